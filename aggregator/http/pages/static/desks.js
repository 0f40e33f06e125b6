// Desk form: a new desk starts with the time zone of the browser.
for (const field of document.querySelectorAll('form[action$="/desks"] [data-time-zone]')) {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  if (!field.form.elements.name.value && zone) field.value = zone;
}
