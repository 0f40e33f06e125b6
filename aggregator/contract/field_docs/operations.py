"""Fields of errors, probes and the pages."""

from __future__ import annotations

from typing import Any

from aggregator.contract.field_docs.model import REF

FIELDS: dict[str, tuple[str, Any]] = {
    "type": ("Address of the description of the error, relative to the service.", "/docs#error-bad_input"),
    "Problem.title": ("The kind of error in words.", "Invalid request"),
    "Problem.status": ("HTTP status.", 400),
    "detail": ("What was wrong, where, and what to do.", "id: expected a string, got an integer."),
    "code": ("Stable code of the error.", "bad_input"),
    "ErrorOut.code": ("Stable reason of this error.", "wrong_type"),
    "field": ("The offending part of the input; absent: no single part.", "id"),
    "errors": ("All errors of the input, the first is that of detail; absent: not an input.", REF),
    "instance": ("Path of the request.", "/v1/articles"),
    "request_id": ("Id of the request in the server's log and in X-Request-Id.", "6680f7ddb130516d"),
    "pointer": ("JSON pointer into the body as a URI fragment; #: the whole body.", "#/id"),
    "parameter": ("Name of a parameter of the query or path.", "limit"),
    "header": ("Name of a header.", "Idempotency-Key"),
    "line": ("Number of the line in the batch, from 1.", 3),
    "error": ("The problem.", REF),
    "HealthOut.status": ("Always ok.", "ok"),
    "ReadyOut.status": ("Always ready.", "ready"),
    "version": ("Version.", "0.1.0"),
    "store": ("State of the store.", REF),
    "spaces": ("Indexes that the service has models for.", ["en.e816"]),
    "StoreOut.kind": ("Kind of the store.", "valkey"),
    "memory_bytes": ("Memory that the store uses, bytes.", 52428800),
    "durability": ("What survives a crash.", "append-only log, at most 1 s is lost"),
    # pages
    "hours": ("Only of these last hours; 0: everything.", 24),
    "view": ("Order of the articles of the report.", "newest"),
    "page": ("Page of the articles, from 1.", 1),
    "print": ("All articles on one page.", False),
    "ours": ("Only events that an own source has published, or none of them.", "yes"),
    "kiosk": ("Large type without controls.", False),
    "done": ("What was just done, for the message of the page.", "saved"),
    "target": ("Id of the target that it was done to.", "9b7f3c21d0e4"),
    "SignInQuery.next": ("Page to return to.", "/"),
    "SignInForm.next": ("Page to return to.", "/"),
    "WebhookForm.next": ("Page to return to.", "/webhooks"),
    "key": ("An access key.", "k9f3.0123456789abcdef"),
    "LookupQuery.q": ("Id or address of a stored article.", "pool-1"),
    "SourcesPageQuery.q": ("Text in the name of the outlet.", "Gazette"),
    "SearchPageQuery.verdict": ("Only with this verdict.", "new"),
}
