"""Sentences with slots, by language. A slot names a kind of value: see values.py.

Both languages of a template have the same slots. Names stand where German needs
neither article nor case for them; numbers of things are left to CLDR, which knows the
plurals.
"""

from __future__ import annotations

TEMPLATES: tuple[dict[str, str], ...] = (
    {
        "en": "Destination {territory}, departure {datetime}.",
        "de": "Reiseziel {territory}, Abfahrt {datetime}.",
    },
    {
        "en": "The meeting is on {date} at {time}.",
        "de": "Die Besprechung ist am {date} um {time}.",
    },
    {
        "en": "The price rose from {money} to {money2}.",
        "de": "Der Preis stieg von {money} auf {money2}.",
    },
    {
        "en": "Country: {territory}, language: {language}.",
        "de": "Land: {territory}, Sprache: {language}.",
    },
    {
        "en": "Country: {territory}, currency: {currency}.",
        "de": "Land: {territory}, Währung: {currency}.",
    },
    {
        "en": "The display shows {measure} after {number} tests.",
        "de": "Die Anzeige zeigt {measure} nach {number} Tests.",
    },
    {
        "en": "The invoice for {money} is due {future}.",
        "de": "Die Rechnung über {money} ist {future} fällig.",
    },
    {
        "en": "The message was sent {past} in {language}.",
        "de": "Die Nachricht wurde {past} auf {language} verschickt.",
    },
    {
        "en": "This text is in {language}, script: {script}.",
        "de": "Dieser Text ist auf {language}, Schrift: {script}.",
    },
    {
        "en": "Open: {weekdays} from {time} to {time2}.",
        "de": "Geöffnet: {weekdays} von {time} bis {time2}.",
    },
    {
        "en": "The manual is available in {languages}.",
        "de": "Das Handbuch gibt es auf {languages}.",
    },
    {
        "en": "We deliver to these countries: {territories}.",
        "de": "Wir liefern in diese Länder: {territories}.",
    },
    {
        "en": "We accept these currencies: {currencies}.",
        "de": "Wir akzeptieren diese Währungen: {currencies}.",
    },
    {
        "en": "Population, {territory}: about {compact}.",
        "de": "Bevölkerung, {territory}: etwa {compact}.",
    },
    {
        "en": "The share rose by {percent} to {number}.",
        "de": "Der Anteil stieg um {percent} auf {number}.",
    },
    {
        "en": "The measured value is {scientific}, not {number}.",
        "de": "Der Messwert ist {scientific}, nicht {number}.",
    },
    {
        "en": "Budget: {sum_in_words}, time left: {duration}.",
        "de": "Budget: {sum_in_words}, verbleibende Zeit: {duration}.",
    },
    {
        "en": "The fine is {sum_in_words}, payable {future}.",
        "de": "Das Bußgeld beträgt {sum_in_words}, zahlbar {future}.",
    },
    {
        "en": "The flight takes {duration} and costs {money}.",
        "de": "Der Flug dauert {duration} und kostet {money}.",
    },
    {
        "en": "Exchange rate, {currency}: {number}.",
        "de": "Wechselkurs, {currency}: {number}.",
    },
    {
        "en": "The report for {month} comes in {language}.",
        "de": "Der Bericht für {month} erscheint auf {language}.",
    },
    {
        "en": "Every {weekday} at {time}: course in {language}.",
        "de": "Jeden {weekday} um {time}: Kurs auf {language}.",
    },
    {
        "en": "On {day} the store closes at {time}.",
        "de": "Am {day} schließt das Geschäft um {time}.",
    },
    {
        "en": "Limit: {measure}, of which {percent} is in use.",
        "de": "Grenze: {measure}, davon sind {percent} belegt.",
    },
    {
        "en": "First value: {measure}, second value: {measure2}.",
        "de": "Erster Wert: {measure}, zweiter Wert: {measure2}.",
    },
    {
        "en": "Place of birth: {territory}, date of birth: {date}.",
        "de": "Geburtsort: {territory}, Geburtsdatum: {date}.",
    },
    {
        "en": "The total for {territory} is {sum_in_words}.",
        "de": "Die Summe für {territory} beträgt {sum_in_words}.",
    },
)
