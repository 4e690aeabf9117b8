#!/usr/bin/env python3
"""Cases for the tests of tokenizers, computed by Hugging Face tokenizers:

    tokenizer_oracle.py FOLDER SEED COUNT [NAME...]   writes FOLDER/NAME/tokenizer.json and texts.json with COUNT random texts

Needs: pip install tokenizers"""
import json
import pathlib
import random
import sys
import unicodedata

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

CORPUS = """The quick brown fox jumps over the lazy dog's back; it's 1234567 o'clock and we'll see, they're late, I've time, I'd go.
Über allen Gipfeln ist Ruh, in allen Wipfeln spürest du kaum einen Hauch. Ça va? Déjà vu, naïve façade, señor.
public static void main(String[] args) { return a + b * 3.14159; }\n\n\tfor (int i = 0; i < 10; ++i) x[i] = i;\r\n
東京は日本の首都です。 北京是中国的首都。 안녕하세요 세계. Привет, мир! مرحبا بالعالم. שלום עולם. नमस्ते दुनिया.
one two three four five six seven eight nine ten 1 2 3 10 20 30 100 200 300 1000   spaces   and    tabs\t\there
""".split('\n')
PIECES = (['a', 'the', 'The', 'quick', 'jumps', 'lazy', 'THE', "it's", "we'LL", "I'Ve", "'s", "'", "''re", 'don’t', 'x' * 40, 'xyz' * 70] +
          ['0', '12', '1234567', '٣٤', '½', '²', 'Ⅷ', '一二'] + list('.,;:!?()[]{}<>#@&%*+-/=\\|~^_`"$€£§') +
          [' ', '  ', '   ', '\t', '\n', '\r\n', '\n\n', ' \n ', '\x0b', '\x0c', '\x85', '\xa0', '\u2003', '\u200b', '\u2028', '\u3000', '\ufeff'] +
          ['é', 'e\u0301', 'n\u0303', 'Å', 'A\u030a', '\u212b', 'ü', 'ß', 'ẞ', 'İ', 'ı', 'ſ', 'K', 'ﬁ', 'Ａ', '①', 'ǆ', 'Σ', 'ς', '\u0301', '\u0323\u0307', 'q\u0307\u0323'] +
          ['東京', '中', '한국', '\u1112\u1161\u11ab', '각', 'ｶﾞ', 'が', 'か\u3099', 'Привет', 'мир', 'مرحبا', 'שלום', 'नमस्ते', 'ไทย', '𠀀', '𝒳'] +
          ['😀', '👨\u200d👩\u200d👧', '🇩🇪', '👍🏽', '❤️', '\U000e0041', '\ue000', '\U0010ffff', '\ufffd', '\ufffe'] +
          ['\x00', '\x01', '\x1f', '\x7f', '\x9f', '\u00ad', '\u200e', '\u2060'] +
          ['<s>', '</s>', '[CLS]', '[MASK]', '<|end|>', '<|e', 'nd|>', '[MA', ' [MASK] ', 'newword', 'NewWord', 'ñandú', '▁', 'Ġ', '##', '<0x41>'])


def text(r):
    if r.random() < 0.02:
        return ''
    if r.random() < 0.1:  # anything at all
        return ''.join(chr(c) for c in (r.choice([r.randrange(0x250), r.randrange(0x3100), r.randrange(0x10ffff)]) for _ in range(r.randrange(1, 30)))
                       if not 0xd800 <= c < 0xe000)
    return r.choice(['', ' ']).join(r.choice(PIECES) for _ in range(r.randrange(1, 14)))


def trained(tokenizer, trainer, special):
    tokenizer.train_from_iterator(CORPUS * 3, trainer)
    return tokenizer


def byte_pairs(split, normalizer=None, special=(), size=500, **options):
    tokenizer = Tokenizer(models.BPE(**options))
    tokenizer.pre_tokenizer = split
    if normalizer:
        tokenizer.normalizer = normalizer
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(CORPUS * 3, trainers.BpeTrainer(vocab_size=size, show_progress=False, special_tokens=list(special),
                                                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    return tokenizer


LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN2 = LLAMA3.replace('{1,3}', '')


def gpt2():
    tokenizer = byte_pairs(pre_tokenizers.ByteLevel(add_prefix_space=False), special=['<|end|>'])
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=True)
    return tokenizer


def roberta():
    tokenizer = byte_pairs(pre_tokenizers.ByteLevel(add_prefix_space=True), special=['<s>', '</s>', '<pad>', '[MASK]'])
    tokenizer.add_special_tokens([AddedToken('[MASK]', lstrip=True)])
    tokenizer.post_processor = processors.RobertaProcessing(('</s>', 1), ('<s>', 0), trim_offsets=True, add_prefix_space=True)
    tokenizer.enable_padding(pad_id=2, pad_token='<pad>', pad_to_multiple_of=4)
    tokenizer.enable_truncation(12)
    return tokenizer


def llama3():
    split = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(LLAMA3), 'isolated'), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer = byte_pairs(split, special=['<s>', '<|end|>'], ignore_merges=True)
    tokenizer.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), processors.TemplateProcessing(
        single='<s> $A', pair='<s> $A <s>:1 $B:1', special_tokens=[('<s>', 0)])])
    return tokenizer


def qwen2():
    split = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(QWEN2), 'isolated'), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer = byte_pairs(split, normalizers.NFC(), special=['<|end|>'])
    tokenizer.add_tokens([AddedToken('newword', single_word=True), AddedToken('ñandú'), AddedToken('ing', rstrip=True)])
    return tokenizer


def word_pieces(normalizer, size=400):
    tokenizer = Tokenizer(models.WordPiece(unk_token='[UNK]', max_input_chars_per_word=100))
    tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.train_from_iterator(CORPUS * 3, trainers.WordPieceTrainer(vocab_size=size, show_progress=False,
                                                                        special_tokens=['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]']))
    return tokenizer


def bert():
    tokenizer = word_pieces(normalizers.BertNormalizer())
    tokenizer.post_processor = processors.TemplateProcessing(single='[CLS] $A [SEP]', pair='[CLS] $A [SEP] $B:1 [SEP]:1',
                                                             special_tokens=[('[CLS]', 2), ('[SEP]', 3)])
    tokenizer.add_tokens(['NewWord'])
    tokenizer.enable_truncation(20)
    tokenizer.enable_padding(length=16, direction='left')
    return tokenizer


def bert_cased():
    tokenizer = word_pieces(normalizers.BertNormalizer(lowercase=False, strip_accents=None, handle_chinese_chars=False))
    tokenizer.post_processor = processors.BertProcessing(('[SEP]', 3), ('[CLS]', 2))
    return tokenizer


def llama2():
    tokenizer = Tokenizer(models.BPE(byte_fallback=True, fuse_unk=True, unk_token='<unk>'))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend('▁'), normalizers.Replace(' ', '▁')])
    tokenizer.decoder = decoders.Sequence([decoders.Replace('▁', ' '), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(' ', 1, 0)])
    fallback = [f'<0x{byte:02X}>' for byte in range(256)]
    tokenizer.train_from_iterator(CORPUS * 3, trainers.BpeTrainer(vocab_size=700, show_progress=False, special_tokens=['<unk>', '<s>'] + fallback))
    tokenizer.post_processor = processors.TemplateProcessing(single='<s> $A', pair='<s> $A $B:1', special_tokens=[('<s>', 1)])
    stored = json.loads(tokenizer.to_str())  # the bytes are no added tokens in published files
    stored['added_tokens'] = [one for one in stored['added_tokens'] if not one['content'].startswith('<0x')]
    return Tokenizer.from_str(json.dumps(stored))


def rare_parts():
    """Parts that few published files have."""
    tokenizer = Tokenizer(models.BPE(unk_token='<unk>', continuing_subword_prefix='##', end_of_word_suffix='</w>'))
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase(), normalizers.Strip(),
                                                 normalizers.Replace(Regex(r'[0-9]{3,}'), '<n>')])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Whitespace(), pre_tokenizers.Digits(True), pre_tokenizers.Punctuation('contiguous'),
                                                       pre_tokenizers.Split('th', 'merged_with_next'), pre_tokenizers.Split('e', 'merged_with_previous')])
    tokenizer.decoder = decoders.BPEDecoder()
    tokenizer.train_from_iterator(CORPUS * 3, trainers.BpeTrainer(vocab_size=300, show_progress=False, special_tokens=['<unk>'],
                                                                  continuing_subword_prefix='##', end_of_word_suffix='</w>'))
    return tokenizer


def metaspace():
    tokenizer = Tokenizer(models.BPE(unk_token='<unk>'))
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme='first')
    tokenizer.decoder = decoders.Metaspace(prepend_scheme='first')
    tokenizer.train_from_iterator(CORPUS * 3, trainers.BpeTrainer(vocab_size=300, show_progress=False, special_tokens=['<unk>', '</s>']))
    tokenizer.enable_truncation(7, strategy='only_first', direction='left')
    return tokenizer


def double_array(entries):
    """A map of texts as SentencePiece stores it: a trie in a double array (Darts), and the texts that they become."""
    texts, starts = b'', {}
    for text in sorted(set(entries.values())):
        starts[text] = len(texts)
        texts += text.encode() + b'\0'
    trie = {}
    for text in entries:
        node = trie
        for byte in text.encode():
            node = node.setdefault(byte, {})
        node[0] = starts[entries[text]]
    units, taken, pending = {}, {0}, [(0, trie)]
    while pending:
        at, node = pending.pop()
        base = next(b for b in range(1, 1 << 20) if not any(b ^ byte in taken for byte in node) and (at ^ b) < 1 << 21)
        taken |= {base ^ byte for byte in node}
        units[at] = units.get(at, 0) | (at ^ base) << 10 | (0x100 if 0 in node else 0)
        for byte, child in node.items():
            units[base ^ byte] = child | 1 << 31 if byte == 0 else byte
            if byte:
                pending.append((base ^ byte, child))
    array = b''.join(units.get(at, 0).to_bytes(4, 'little') for at in range((max(units) | 0xff) + 1))
    return len(array).to_bytes(4, 'little') + array + texts


CHARACTER_MAP = ({chr(c): unicodedata.normalize('NFKC', chr(c)) for c in [*range(0xa0, 0x180), *range(0x2000, 0x2100), *range(0xff00, 0xff80)]
                  if unicodedata.normalize('NFKC', chr(c)) != chr(c)} |
                 {'e\u0301': 'é', 'n\u0303': 'ñ', '\u0301': '', '\x01': '', '\u200b': '', '\u200d': ' ', '\t': ' ', '\n': ' ', '\r\n': '||', 'ß': 'sss',
                  'か\u3099': 'が', '😀': ':-)', '①': '(1)', 'ﬁ': 'fi', '\u00b2': '2'})


def unigram(normalizer=None, splitter=None, size=400, bytes_too=False):
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizer or normalizers.Precompiled(double_array(CHARACTER_MAP))
    tokenizer.pre_tokenizer = splitter or pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    special = ['<unk>', '<s>', '</s>'] + [f'<0x{byte:02X}>' for byte in range(256)] * bytes_too
    tokenizer.train_from_iterator(CORPUS * 3, trainers.UnigramTrainer(vocab_size=size, show_progress=False, unk_token='<unk>', special_tokens=special))
    tokenizer.post_processor = processors.TemplateProcessing(single='<s> $A </s>', pair='<s> $A </s> $B </s>', special_tokens=[('<s>', 1), ('</s>', 2)])
    return tokenizer


def unigram_bytes():
    """Bytes for unknown characters; pieces are whole texts."""
    tokenizer = unigram(normalizers.Sequence([normalizers.Replace(' ', '▁')]), pre_tokenizers.Metaspace(split=False, prepend_scheme='first'), 600, True)
    tokenizer.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace(prepend_scheme='first')])
    stored = json.loads(tokenizer.to_str())
    stored['model']['byte_fallback'] = True
    stored['added_tokens'] = [one for one in stored['added_tokens'] if not one['content'].startswith('<0x')]
    return Tokenizer.from_str(json.dumps(stored))


def albert():
    parts = [normalizers.Replace('``', '"'), normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase(),
             normalizers.Precompiled(double_array(CHARACTER_MAP)), normalizers.Replace(Regex(' {2,}'), ' ')]
    return unigram(normalizers.Sequence(parts), pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()]))


KINDS = {f.__name__: f for f in (gpt2, roberta, llama3, qwen2, bert, bert_cased, llama2, rare_parts, metaspace, unigram, unigram_bytes, albert)}
EVERY_CHARACTER = {'bert', 'rare_parts', 'llama3', 'metaspace', 'unigram', 'albert'}  # the kinds whose parts look characters up


def texts(r, name, count):
    """Random texts; if they are many, then also texts that have all characters of the first planes together."""
    for _ in range(count):
        yield text(r)
    if count >= 10000 and name in EVERY_CHARACTER:
        known = [chr(c) for c in range(0x33480) if not 0xd800 <= c < 0xe000]
        for begin in range(0, len(known), 6):
            yield ' '.join('a' + c + 'b' for c in known[begin:begin + 6])


def case(tokenizer, r, first):
    one = {'text': first, 'special': r.random() < 0.7}
    if r.random() < 0.3:
        one['pair'] = text(r)
    try:
        encoding = tokenizer.encode(one['text'], one.get('pair'), add_special_tokens=one['special'])
    except Exception as error:  # a pair that may not be cut so far
        return one | {'error': str(error)}
    ids = encoding.ids + [r.randrange(tokenizer.get_vocab_size()) for _ in range(r.choice([0, 0, 3]))]
    return one | {'ids': encoding.ids, 'tokens': encoding.tokens, 'offsets': encoding.offsets, 'type_ids': encoding.type_ids,
                  'attention_mask': encoding.attention_mask, 'special_tokens_mask': encoding.special_tokens_mask,
                  'decode': ids, 'decoded': tokenizer.decode(ids), 'decoded_all': tokenizer.decode(ids, skip_special_tokens=False)}


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    for name in sys.argv[4:] or KINDS:
        folder = pathlib.Path(sys.argv[1]) / name
        folder.mkdir(parents=True, exist_ok=True)
        tokenizer = KINDS[name]()
        (folder / 'tokenizer.json').write_text(tokenizer.to_str())
        r = random.Random(f'{name} {sys.argv[2]}')
        lines = [json.dumps(case(tokenizer, r, first), separators=(',', ':')) for first in texts(r, name, int(sys.argv[3]))]
        (folder / 'texts.json').write_text('[' + ',\n'.join(lines) + ']\n')


main()
