"""Names that news writes in two forms: countries and their adjectives ("Egypt", "Egyptian"), and a few words.

Early headlines of one event use either form, so that its items form two stories until others name both.
The detector counts both as one term. Stems of English words, as the tokenizer gives them; other languages are
unchanged unless they share a stem.
"""

from __future__ import annotations

from aggregator.analysis.text import tokenizer

# Adjective -> name, as word stems.
_ADJECTIVES = """
    afghan:afghanistan albanian:albania algerian:algeria american:america argentin:argentina
    armenian:armenia australian:australia austrian:austria azerbaijani:azerbaijan bangladeshi:bangladesh
    belgian:belgium bolivian:bolivia bosnian:bosnia brazilian:brazil british:britain bulgarian:bulgaria
    cambodian:cambodia canadian:canada chilean:chile chines:china colombian:colombia congoles:congo
    croatian:croatia cuban:cuba cypriot:cyprus czech:czech danish:denmark dutch:netherland
    ecuadorean:ecuador egyptian:egypt estonian:estonia ethiopian:ethiopia european:europ finnish:finland
    french:franc georgian:georgia german:germani ghanaian:ghana greek:greec haitian:haiti
    hungarian:hungari icelandic:iceland indian:india indonesian:indonesia iranian:iran iraqi:iraq
    irish:ireland israeli:israel italian:itali ivorian:ivori jamaican:jamaica japanes:japan
    jordanian:jordan kazakh:kazakhstan kenyan:kenya korean:korea kuwaiti:kuwait kyrgyz:kyrgyzstan
    latvian:latvia lebanes:lebanon libyan:libya lithuanian:lithuania malaysian:malaysia malian:mali
    mexican:mexico mongolian:mongolia moroccan:morocco nepales:nepal nigerian:nigeria norwegian:norway
    ossetian:ossetia pakistani:pakistan palestinian:palestin peruvian:peru polish:poland
    portugues:portug romanian:romania russian:russia rwandan:rwanda saudi:saudi serbian:serbia
    singaporean:singapor slovak:slovakia slovenian:slovenia somali:somalia spanish:spain sudanes:sudan
    swedish:sweden swiss:switzerland syrian:syria taiwanes:taiwan thai:thailand tunisian:tunisia
    turkish:turkey ugandan:uganda ukrainian:ukrain venezuelan:venezuela vietnames:vietnam yemeni:yemen
    zimbabwean:zimbabw
"""
_WORDS = "earthquak:quak gunmen:gunman"

VARIANTS = {
    variant: name
    for pair in f"{_ADJECTIVES} {_WORDS}".split()
    for variant, name in [pair.split(":")]
    if variant != name
}


def terms_of_word(word: str, lang: str) -> list[str]:
    """Return the terms of a word of a headline: several in a script without spaces, none for a stop word."""
    return [VARIANTS.get(term, term) for term in tokenizer.tokenize(word, lang)]
