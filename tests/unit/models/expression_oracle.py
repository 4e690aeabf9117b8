#!/usr/bin/env python3
"""Cases for the tests of regular expressions, computed by Oniguruma, which Hugging Face tokenizers contains:

    expression_oracle.py FILE SEED COUNT    writes FILE with all listed and COUNT random expressions, and what they match

Needs: the library (Debian: libonig5). Releases before 6.9.9 leave symbols out of [[:punct:]], which is not here for that, and older ones than
6.9.10 do not see what is before the end of a text in a look-behind beside \\z or \\Z: other seeds may give such cases."""
import ctypes
import json
import random
import sys

LIBRARY = ctypes.CDLL('libonig.so.5')
UTF8 = ctypes.addressof(ctypes.c_char.in_dll(LIBRARY, 'OnigEncodingUTF8'))
SYNTAX = ctypes.c_void_p.in_dll(LIBRARY, 'OnigDefaultSyntax').value
LIBRARY.onig_initialize((ctypes.c_void_p * 1)(UTF8), 1)


class ErrorInfo(ctypes.Structure):
    _fields_ = [('encoding', ctypes.c_void_p), ('begin', ctypes.c_void_p), ('end', ctypes.c_void_p)]


class Region(ctypes.Structure):
    _fields_ = [('allocated', ctypes.c_int), ('count', ctypes.c_int), ('begin', ctypes.POINTER(ctypes.c_int)),
                ('end', ctypes.POINTER(ctypes.c_int)), ('history', ctypes.c_void_p)]


LIBRARY.onig_region_new.restype = ctypes.POINTER(Region)


class Expression:
    """As tokenizers compiles and searches it. Raises ValueError for one that Oniguruma refuses."""

    def __init__(self, expression):
        pattern = expression.encode()
        self.pattern = ctypes.create_string_buffer(pattern, len(pattern) + 1)
        begin = ctypes.addressof(self.pattern)
        self.compiled, error = ctypes.c_void_p(), ErrorInfo()
        if LIBRARY.onig_new(ctypes.byref(self.compiled), ctypes.c_void_p(begin), ctypes.c_void_p(begin + len(pattern)), 0, ctypes.c_void_p(UTF8),
                            ctypes.c_void_p(SYNTAX), ctypes.byref(error)) != 0:
            raise ValueError(expression)

    def search(self, text, at):
        buffer = ctypes.create_string_buffer(text, len(text) + 1)
        begin = ctypes.addressof(buffer)
        end = ctypes.c_void_p(begin + len(text))
        region = LIBRARY.onig_region_new()
        found = LIBRARY.onig_search(self.compiled, ctypes.c_void_p(begin), end, ctypes.c_void_p(begin + at), end, region, 0)
        place = (region[0].begin[0], region[0].end[0]) if found >= 0 else None
        LIBRARY.onig_region_free(region, 1)
        if found < -1:
            raise ValueError(found)
        return place

    def matches(self, text):
        """Like the iterator of the crate onig: an empty match is left out where another one ends."""
        utf8, at, all_matches = text.encode(), 0, []
        while text and at <= len(utf8):
            found = self.search(utf8, at)
            if found is None:
                break
            begin, end = found
            if begin == end and all_matches and all_matches[-1][1] == end:
                at += 1
                while at < len(utf8) and utf8[at] & 0xC0 == 0x80:
                    at += 1
                continue
            at = end
            all_matches.append((begin, end))
        return [[len(utf8[:begin].decode()), len(utf8[:end].decode())] for begin, end in all_matches]


LISTED = [
    r'\w+|[^\w\s]+', r'\p{N}{1,3}+|\D+', r'.+', r'(?m).+', r'(?m:.+)|x', r'\h+', r'\H+', '^a$', '^', '$', '^.', '.$', r'\A.', r'.\z', r'.\Z', r'\Z',
    r'\b', r'\B', r'\b\w', r'\w\b', r'\N+', r'\O{2}', r'\s+$', r'[[:alpha:]]+', r'[[:^digit:]]+', r'[[:graph:]]+', r'[[:print:]]+',
    r'[[:space:]]', r'[[:upper:][:lower:]]+', r'[[:word:]-]+', r'[[:xdigit:]]+', r'[[:cntrl:]]', r'[[:blank:]]+', r'[[:ascii:]]+', r'[[:alnum:]]+',
    r'\p{Punct}+', r'\p{Han}+', r'\p{^L}+', r'\P{^L}+', r'\p{l}\p{Letter}', r'\p{ White_Space }', r'\p{Emoji}', r'\p{Lu}?\p{Ll}+', r'\P{Latin}+', r'\p{any}',
    r'a{2}?', r'a{2}+', r'a{,2}', r'a{,}', r'a{x', r'a{1,2}?', r'a{1,2}{2}', 'a**', 'a+?', 'a++', 'a?+', 'a*+a', '(?>a+)a', '(?:a|b)++', r'\d{2}?\d',
    '[]a]+', '[a-]+', '[-a]+', r'[\w-]+', '[a-c-e]+', '[a-c&&b-d]+', '[a[b0]]+', '[^a[b0]]+', '[^a&&^b]', '[a&&b&&ab]', '[--/]', r'[\]\-\^\\a]+', r'[\b]',
    '[^\n]', r'[\x41-\x{5a}\u00e9]+', r'[\n-\r]+', '[[a]-b]+', '[^[:alpha:]]+', r'[\P{L}a]+', r'[^\P{L}a]+', '[&a]+', '[a^]+', '[[:word]b]+',
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)", r"'(?i:[sdmt]|ll|ve|re)", '(?i)[^s]+', r'(?i)\p{Lu}', r'(?i)[a-z]+', '(?i)k', 'a(?i)b|S', '(?i-i:s)', '(?i:s)s', '(?-i)S',
    '(?i)é|q', '(?=[A-Z])', '(?<=a)b', '(?<!a)b', '(?<=^|a).', r'(?<=\bs)\w', 'a|(?=b)', 'a*', '()', 'a||b', '(?#x)a', '(?<n>a)b',
    "(?'n'a)", '(a)(b)?', r'\_\-\'\"\<\>\/\@', r'\t|\r|\f|\v|\a|\e', r'\s+(?!\S)|\s+', r'\S+', r'(?:\s|^)a', 'x{0}a', r'\p{L}+(?=\d)', r'[^\r\n\p{L}\p{N}]?+\p{L}++',
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
]
PIECES = (list('aabbsSkKtTxQZzé09_-./<$^\'"') + ['ab', "'s", "'LL", '123456', ' ', '  ', '\t', '\n', '\n\n', '\r\n', '\r', '\x0b', '\x0c', '\x85', '\xa0', '\u2028', '\u2029', '\u3000'] +
          ['e\u0301', '\u0301', '👨\u200d👩', '\u200d', '\u200c', '漢字', 'カ', '٣', '½', 'Ⅷ', 'ſ', '\u212a', 'İ', 'Σς', '‿', '\x00', '\x08', '\x7f', '\ue000', '€', '«'])
CLASSES = [r'\w', r'\W', r'\d', r'\D', r'\s', r'\S', r'\h', r'\p{L}', r'\P{N}', r'\p{^Lu}', '[a-c]', '[^a-cs]', r'[\w\s]', r'[^\w\d]', '[[:alpha:]0]', '[^[:space:]b]', r'[\p{L}&&\w]', r'[\w&&[^_a]]',
           r'[\s\S]', '[ab[^b]]', r'[^\S\n]']
ATOMS = list('aabsk0 _') + ['ab', '.', r'\n', r'\.', "'"] + CLASSES
ANCHORS = ['^', '$', r'\b', r'\B', r'\A', r'\z', r'\Z']
QUANTIFIERS = [''] * 8 + ['?', '*', '+', '??', '*?', '+?', '?+', '*+', '++', '{2}', '{1,2}', '{1,}', '{,2}', '{1,2}?', '{1,2}+', '{2}?', '{2}+']


def expression(r, depth=0):
    def item():
        kind = r.random()
        if depth < 2 and kind < 0.2:
            return r.choice(['(', '(?:', '(?:', '(?>', '(?i:', '(?m:', '(?-i:']) + expression(r, depth + 1) + ')' + r.choice(QUANTIFIERS)
        if depth < 2 and kind < 0.28:
            return r.choice(['(?=', '(?!']) + expression(r, depth + 1) + ')'
        if kind < 0.33:
            return r.choice(['(?<=', '(?<!']) + r.choice(ATOMS) + ')'
        if kind < 0.43:
            return r.choice(ANCHORS)
        if kind < 0.45 and depth:
            return r.choice(['(?i)', '(?m)', '(?-i)'])
        return r.choice(ATOMS) + r.choice(QUANTIFIERS)
    return '|'.join(''.join(item() for _ in range(r.choice([1, 1, 2, 2, 3]))) for _ in range(r.choice([1, 1, 1, 2, 3])))


FEW = list('aabbsk001_ \n') + ['ab', '.']
TEXTS = ['aab aaabbbb ab', 'a{,}a{xa{2', "ab's'LL SSs 'tT'veſ", 'aBcD 12345 ba', '/-.,&^]a', '_-\'"</@>', 'a\na\r\na\u2028a\x85a', 'qÉ sa bs ba', '\x08\x07\x1b\t']


def case(r, written, texts=()):
    compiled = Expression(written)
    random_texts = [''.join(r.choice(pieces) for _ in range(r.randrange(1, 9))) for pieces in [PIECES, FEW] * 4]
    return {'expression': written, 'matches': {text: compiled.matches(text) for text in [*texts, *random_texts]}}


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    r = random.Random(sys.argv[2])
    cases = [case(r, one, TEXTS) for one in LISTED]
    while len(cases) < len(LISTED) + int(sys.argv[3]):
        try:
            cases.append(case(r, expression(r)))
        except ValueError:  # not an expression, or one that Oniguruma gives up
            pass
    with open(sys.argv[1], 'w') as out:
        out.write('[' + ',\n'.join(json.dumps(one, separators=(',', ':')) for one in cases) + ']\n')


main()
