"""Regular expressions for numbers, units, dates and mathematics."""

from __future__ import annotations

import re

from falter.core.late_regex import late_regex

__all__ = [
    "DATE",
    "DATE_CUE",
    "DIGIT",
    "MATH",
    "MATH_CUE",
    "NUMBER",
    "NUMBER_CUE",
    "ROW",
    "ROW_CUE",
]

DIGIT = (
    r"\d\u00b2\u00b3\u00b9\u2070-\u2079\u2080-\u2089\u00bc-\u00be\u2153-\u215e"
    r"\u2160-\u2188\u2460-\u249b"  # Roman, encircled
)

_COINS = r"$\u00a2-\u00a5\u20a0-\u20bf"
_CURRENCY = rf"[{_COINS}]"
_FUNCTION = r"(?:sin|cos|tan|log|ln|exp|sqrt|lim|max|min|mod|gcd|lcm)"
_OPENING = rf"(?:[(\[{{∑∏∫][ ]?|[-+−–±√∛∜¬|]|{_CURRENCY}){{0,8}}"
_CLOSING = r"(?:[ ]?[)\]}]|[²³¹⁰⁴-⁹|]|%|!(?=[ ]?[-+*/=×÷)])){0,8}"
_OPERATOR = r"""(?!</?[A-Za-z][^<>\n]{0,60}>)  # no tag
    (?:[-+*/×÷·∙⋅=<>≤≥≠≈≡~^±∓−–—→⇒∈∉∪∩⊂⊆∧∨⊕∘&|]{1,3}|mod\b|over\b(?=[ ]\d)|x(?=[ ]?\d))"""
_OPERAND = rf"""(?:
      (?:\d+(?:[.,]\d+){{0,20}}+|\.\d+)(?:[A-Za-zα-ω]{{1,2}}(?![A-Za-z]))?
    | {_FUNCTION}\b
    | [A-Za-zα-ωΑ-Ωℂℕℚℝℤ∅∞](?:_\w{{1,3}})?(?![\w'’])
    | (?!(?:by|my|ex|ox|ax|yo|ya|ye|xi|zu)\b)(?:[a-z][xyz]|[xyz][a-z])(?![\w'’])
    | \?
    )"""
MATH = late_regex(
    rf"""(?<![\w.])(?<!\d,){_OPENING}{_OPERAND}{_CLOSING}
    (?:(?:[ ]{{0,2}}{_OPERATOR}[ ]{{0,2}}|(?=[(\[])){_OPENING}{_OPERAND}{_CLOSING}){{1,200}}+""",
    re.VERBOSE,
)
MATH_CUE = late_regex(
    rf"[(\[{{∑∏∫\-+−–±√∛∜¬|{_COINS}\d.?A-Za-zα-ωΑ-Ωℂℕℚℝℤ∅∞](?<![\w.].)(?<!\d,.)"
    r"(?:(?<![A-Za-zα-ωΑ-Ω])|(?![\w'’])|(?=_\w)|(?=[xyz](?!\w))|(?<=[xyz])(?=[a-z](?!\w))"
    r"|(?<=[sctlemg])(?=in|os|an|og|n\b|xp|qrt|im|ax|od|cd|cm))"
)

_UNIT = r"""(?:[kcmdnµμ]?m|ft|yd|mi|[kmµμ]?g|lbs?|oz|t|[mcd]?[lL]|gal|hrs?|h|mins?|secs?|[mnµμ]?s
    |mph|kph|rpm|bpm|psi|[kMG]?Hz|[kMGT]?Wh?|[kM]?J|k?cal|[mk]?V|m?A|k?[ΩN]|[khM]?Pa|atm|m?mol|K|C|F
    |M|mM|[kMG]?eV|dB|[kKMGT]?B|bits?|px|ha)"""
_UNIT_WORD = r"""(?:(?:kilo|centi|milli|micro|nano|mega)?(?:met(?:re|er)|gram(?:me)?|lit(?:re|er)
    |watt|joule|byte|pascal|volt)s?|inch(?:es)?|foot|feet|yards?|miles?|acres?|ounces?|pounds?|tons?
    |tonnes?|gallons?|pints?|quarts?|seconds?|minutes?|hours?|days?|weeks?|months?|years?|degrees?
    |percent|dollars?|euros?|cents?|calories)\b"""
NUMBER = late_regex(
    rf"""(?<!\w)(?:(?:[-+−±]|§[ ]?|(?:US|CA|AU|NZ|HK)?{_CURRENCY}[ ]?){{0,2}})
    (?:\.?[{DIGIT}]+(?:[.,:/\-–\u00a0\u202f\u2009'’]\d+)*)(?:[eE][-+−]?\d+)?(?:st|nd|rd|th|s)?
    (?![A-Za-z])
    (?:[ \u00a0]?[%‰] | [ \u00a0]?[°º][ ]?[CFK]?\b
      | [ \u00a0-]?{_UNIT}(?:[/·*]{_UNIT}){{0,2}}(?:\^?[-−]?[{DIGIT}])?(?!\w)
      | [ \u00a0]?(?:{_CURRENCY}|USD|EUR|GBP|JPY|CHF)
      | [ ](?:hundred|thousand|million|billion|trillion)\b(?:[ ]{_UNIT_WORD})? | [ -]{_UNIT_WORD}
      | !(?=[ ](?:[a-z]|[-+*/=×÷]))
      | [ ]?[ap]\.?m\b\.? )?
  | (?<![\w.])(?:{_CURRENCY}|§[ ]?)?\d+(?:[.,]\d+)*[A-Za-zµμ]{{1,3}}(?:/[a-z]{{1,3}})?\b""",
    re.VERBOSE,
)
# Where a number may begin. Scanning for one character is fast and leaves few places to try.
NUMBER_CUE = late_regex(
    rf"[{DIGIT}\-+−±§.UCANH{_COINS}](?<!\w.)"
    rf"(?:(?<=[{DIGIT}§{_COINS}])|(?=[{DIGIT}.§\-+−±{_COINS}])|(?<=[UCANH])(?=[SAUZK]{_CURRENCY}))"
)
_MONTH = r"""(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?
    |Sept?(?:ember)?|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)\b\.?"""
DATE = late_regex(
    rf"""\b(?:\d{{1,2}}(?:st|nd|rd|th)?[ ](?:of[ ])?{_MONTH}(?:,?[ ]\d{{4}}\b)?
    | {_MONTH}[ ]\d{{1,4}}(?:st|nd|rd|th)?\b(?:,?[ ]\d{{4}}\b)?)""",
    re.VERBOSE,
)
DATE_CUE = late_regex(r"[\dJFMASOND](?<!\w.)")

# Numbers in a row, such as coordinates: without the comma they would be other numbers.
ROW = late_regex(
    r"(?<![\w.,])\(?[-+−]?\d+(?:\.\d+)?(?:,[ ]?[-+−]?\d+(?:\.\d+)?(?![:\w/])){1,200}+\)?"
)
ROW_CUE = late_regex(r"[\d(\-+−](?<![\w.,].)(?=[\d.,\-+−])")
