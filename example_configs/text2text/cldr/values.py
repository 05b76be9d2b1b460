"""Values of everyday life, each of which CLDR writes in every locale.

A value is drawn once and then rendered in the source and in the target locale, so
that the two sides say the same by construction.
"""

from __future__ import annotations

import datetime
import random
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import islice

from babel import Locale, core, dates, lists, numbers, units

Render = Callable[[Locale], str]

MEASURES = (
    "length-kilometer length-meter length-centimeter length-millimeter length-mile "
    "length-yard length-foot length-inch length-light-year length-nautical-mile "
    "area-hectare area-acre "
    "mass-tonne mass-kilogram mass-gram mass-milligram mass-pound mass-ounce "
    "mass-carat "
    "volume-liter volume-deciliter volume-centiliter volume-milliliter volume-gallon "
    "volume-pint volume-barrel volume-hectoliter "
    "speed-kilometer-per-hour speed-meter-per-second speed-mile-per-hour speed-knot "
    "temperature-celsius temperature-fahrenheit temperature-kelvin angle-degree "
    "digital-byte digital-kilobyte digital-megabyte digital-gigabyte digital-terabyte "
    "power-watt power-kilowatt power-megawatt power-horsepower "
    "energy-joule energy-kilojoule energy-kilowatt-hour energy-kilocalorie "
    "electric-volt electric-ampere electric-ohm "
    "frequency-hertz frequency-kilohertz frequency-megahertz "
    "pressure-bar pressure-millibar pressure-hectopascal"
).split()
DURATIONS = (
    "duration-second duration-minute duration-hour duration-day duration-week "
    "duration-month duration-year"
).split()
# How many of a unit people say before they turn to the next one.
RELATIVE_UNITS = {"second": 59, "minute": 59, "hour": 23, "day": 30, "week": 12}

# Two-letter codes of unions, of the unknown and of test data.
NO_COUNTRIES = ("EU", "EZ", "QO", "UN", "XA", "XB", "ZZ")

FIRST_DAY = datetime.datetime(1990, 1, 1)
NUM_DAYS = 50 * 365


def clean(text: str) -> str:
    """Returns ``text`` with the locale's special spaces as plain ones."""
    return re.sub(r"\s+", " ", text).strip()


def is_plain(text: str) -> bool:
    """True for text that Unicode normalization, as in tokenizers, leaves alone."""
    no_controls = not any(unicodedata.category(letter) == "Cf" for letter in text)
    return bool(text) and no_controls and unicodedata.normalize("NFKC", text) == text


class Values:
    """Draws values by kind; names come from decks, so that all are equally frequent.

    Args:
      source: the locale that is translated from.
      target: the locale that is translated to.
      rng: where all chance comes from.
    """

    def __init__(self, source: Locale, target: Locale, rng: random.Random):
        self._locales = (source, target)
        self._rng = rng
        language_codes = [code for code in source.languages if len(code) == 2]
        territory_codes = [
            code
            for code in source.territories
            if len(code) == 2 and code not in NO_COUNTRIES
        ]
        self._languages = self._deck(language_codes, lambda locale: locale.languages)
        self._territories = self._deck(
            territory_codes, lambda locale: locale.territories
        )
        # One deck for each of the forms in which a currency is written.
        self._currencies, self._currency_symbols, self._currency_plurals = (
            self._deck(
                _currencies_in_use(territory_codes), lambda locale: locale.currencies
            )
            for _ in range(3)
        )
        self._scripts = self._deck(
            _scripts_of(language_codes), lambda locale: locale.scripts
        )
        self._measures = self._shuffle_forever(MEASURES)

    def draw(self, kind: str) -> Render:
        """Returns a value of ``kind``, the name of one of the methods below."""
        return getattr(self, kind)()

    # Names

    def territory(self) -> Render:
        code = next(self._territories)
        return lambda locale: locale.territories[code]

    def language(self) -> Render:
        code = next(self._languages)
        return lambda locale: locale.languages[code]

    def currency(self) -> Render:
        code = next(self._currencies)
        return lambda locale: locale.currencies[code]

    def script(self) -> Render:
        code = next(self._scripts)
        return lambda locale: locale.scripts[code]

    def weekday(self) -> Render:
        day = self._rng.randrange(7)
        return lambda locale: locale.days["stand-alone"]["wide"][day]

    def territories(self) -> Render:
        return self._list_of(self._territories, lambda locale: locale.territories)

    def languages(self) -> Render:
        return self._list_of(self._languages, lambda locale: locale.languages)

    def currencies(self) -> Render:
        return self._list_of(self._currencies, lambda locale: locale.currencies)

    def weekdays(self) -> Render:
        days = self._rng.sample(range(7), self._rng.randint(2, 3))
        return lambda locale: lists.format_list(
            [locale.days["stand-alone"]["wide"][day] for day in days], locale=locale
        )

    # Dates and times

    def date(self) -> Render:
        moment = self._moment()
        return self._styled(
            ("short", "medium", "long", "full"),
            lambda style, locale: dates.format_date(moment, style, locale),
        )

    def day(self) -> Render:
        moment = self._moment()
        return lambda locale: dates.format_skeleton("MMMMd", moment, locale=locale)

    def month(self) -> Render:
        moment = self._moment()
        return lambda locale: dates.format_skeleton("yMMMM", moment, locale=locale)

    def time(self) -> Render:
        moment = self._moment()
        return self._styled(
            ("short", "medium"),
            lambda style, locale: dates.format_time(moment, style, locale=locale),
        )

    def datetime(self) -> Render:
        moment = self._moment()
        return self._styled(
            ("short", "medium"),
            lambda style, locale: dates.format_datetime(moment, style, locale=locale),
        )

    def past(self) -> Render:
        return self._relative(-1)

    def future(self) -> Render:
        return self._relative(1)

    # Numbers

    def number(self) -> Render:
        value = self._decimal(max_digits=5)
        return lambda locale: numbers.format_decimal(value, locale=locale)

    def percent(self) -> Render:
        value = self._decimal(max_digits=2).scaleb(-2)
        return lambda locale: numbers.format_percent(
            value, locale=locale, decimal_quantization=False
        )

    def scientific(self) -> Render:
        mantissa = Decimal(self._rng.randint(101, 999)).scaleb(-2)
        value = mantissa.scaleb(self._rng.randint(-9, 20))
        return lambda locale: numbers.format_scientific(value, locale=locale)

    def compact(self) -> Render:
        # Two digits that compact forms show in full: rounding would hide a
        # difference that the other locale shows.
        value = self._rng.randint(11, 99) * 10 ** self._rng.randint(5, 10)
        return lambda locale: numbers.format_compact_decimal(
            value, format_type="long", locale=locale, fraction_digits=1
        )

    def money(self) -> Render:
        code = next(self._currency_symbols)
        cents = self._rng.choice((0, 25, 50, 75, 95, 99))
        value = self._integer(max_digits=4) + Decimal(cents).scaleb(-2)
        return lambda locale: numbers.format_currency(value, code, locale=locale)

    def sum_in_words(self) -> Render:
        code = next(self._currency_plurals)
        value = self._integer(max_digits=3)
        return lambda locale: numbers.format_currency(
            value, code, locale=locale, format_type="name", currency_digits=False
        )

    # Measures

    def measure(self) -> Render:
        unit = next(self._measures)
        value = self._rng.choice((self._integer(3), self._decimal(2)))
        return self._styled(
            ("short", "long"),
            lambda length, locale: units.format_unit(
                value, unit, length, locale=locale
            ),
        )

    def duration(self) -> Render:
        unit = self._rng.choice(DURATIONS)
        value = self._rng.randint(1, 15)
        return lambda locale: units.format_unit(value, unit, "long", locale=locale)

    # Helpers

    def _deck(
        self, codes: Iterable[str], names: Callable[[Locale], Mapping[str, str]]
    ) -> Iterator[str]:
        """Returns codes, endlessly, whose names are plain and translate one way."""
        by_name: dict[str, dict[str, str]] = {}
        source, target = self._locales
        for code in sorted(codes):
            name, translation = names(source).get(code), names(target).get(code)
            if name and translation and is_plain(name) and is_plain(translation):
                by_name.setdefault(name, {})[code] = translation
        unambiguous = [
            next(iter(translations))
            for translations in by_name.values()
            if len(set(translations.values())) == 1
        ]
        return self._shuffle_forever(unambiguous)

    def _shuffle_forever(self, items: Sequence) -> Iterator:
        while True:
            yield from self._rng.sample(items, len(items))

    def _list_of(
        self, deck: Iterator[str], names: Callable[[Locale], Mapping[str, str]]
    ) -> Render:
        codes = list(islice(deck, self._rng.randint(2, 3)))
        return lambda locale: lists.format_list(
            [names(locale)[code] for code in codes], locale=locale
        )

    def _moment(self) -> datetime.datetime:
        seconds = self._rng.randrange(NUM_DAYS * 24 * 60 * 60)
        return FIRST_DAY + datetime.timedelta(seconds=seconds)

    def _relative(self, direction: int) -> Render:
        unit, largest = self._rng.choice(list(RELATIVE_UNITS.items()))
        count = direction * self._rng.randint(1, largest)
        delta = datetime.timedelta(**{f"{unit}s": count})
        # A threshold of 1000 keeps "59 minutes" from becoming "1 hour".
        return lambda locale: dates.format_timedelta(
            delta, granularity=unit, threshold=1000, add_direction=True, locale=locale
        )

    def _integer(self, max_digits: int) -> int:
        # From two on: of each of 200 units and currencies there would be a handful of
        # singulars, too few to learn them.
        return self._rng.randrange(2, 10 ** self._rng.randint(1, max_digits))

    def _decimal(self, max_digits: int) -> Decimal:
        value = Decimal(self._integer(max_digits))
        places = self._rng.choice((0, 0, 1, 2))
        if places:
            value += Decimal(self._rng.randrange(1, 10**places)).scaleb(-places)
            # 1.50 is written like 1.5 but may have another plural.
            value = value.normalize()
        return value

    def _styled(
        self, styles: Sequence[str], write: Callable[[str, Locale], str]
    ) -> Render:
        """Returns a value in one of ``styles``.

        Styles that the source locale writes alike (medium and long dates in May) are
        one style in the target locale as well: a translator could not tell them apart.
        """
        source = self._locales[0]
        written = write(self._rng.choice(styles), source)
        style = next(style for style in styles if write(style, source) == written)
        return lambda locale: write(style, locale)


def _currencies_in_use(territories: Iterable[str]) -> set[str]:
    return {
        currency
        for territory in territories
        for currency in numbers.get_territory_currencies(territory)
    }


def _scripts_of(languages: Iterable[str]) -> set[str]:
    likely_subtags = core.get_global("likely_subtags")
    tags = [likely_subtags[code] for code in languages if code in likely_subtags]
    return {tag.split("_")[1] for tag in tags}
