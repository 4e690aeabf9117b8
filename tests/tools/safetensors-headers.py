#!/usr/bin/env python3
"""Prints safetensors headers, most of them damaged, with the result or error of the safetensors library for each:
tests/unit/formats/safetensors_headers.json. Needs: pip install safetensors==0.8.0"""
import collections
import json
import random
import re
import struct

import safetensors

random.seed(7)
F32 = '"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}'
VALUES = ['null', 'true', 'false', '0', '-0', '-1', '1.5', '1e300', '1e400', '2.0', '1e5', '1e16', '1e-7', '18446744073709551615',
          '18446744073709551616', '-9223372036854775808', '-9223372036854775809', '01', '1.', '1.e5', '.5', '1e', '1e+', '-', '+1', 'nul', 'tru', 'nan',
          '"s"', '"a\\nb\\"c\\\\d"', '"\\u00e9"', '"\\ud83d\\ude00"', '"\\ud83d"', '"\\ude00"', '"\\ud83dx"', '"\\ud83d\\n"', '"\\ud83d\\u0041"', '"\\u12g4"',
          '"\\x"', '"tab\there"', '"open', '[]', '[1]', '[1,2,3]', '[1,]', '[,]', '[1 2]', '[', '[1', '{}', '{"b":1}', '{"b":1,}', '{,}', '{"b"}',
          '{"b":}', '{b:1}', '{1:2}', '{"b":1 "c":2}', '{', '{"F32":null}', '{"F32":1}', '{"F32":null,"F16":null}', '{"F33":null}',
          '["F32",[2],[0,8]]', '["F32",[2]]', '["F32",[2],[0,8],1]', '[' * 130 + ']' * 130, '[' * 126 + ']' * 126, '[' * 125 + ']' * 125]
DTYPES = ['BOOL', 'F4', 'F6_E2M3', 'F6_E3M2', 'U8', 'I8', 'F8_E5M2', 'F8_E4M3', 'F8_E8M0', 'F8_E4M3FNUZ', 'F8_E5M2FNUZ', 'I16', 'U16', 'F16',
          'BF16', 'I32', 'U32', 'F32', 'C64', 'F64', 'I64', 'U64', 'f32', '', 'F33', 'F7']


def templates():
    yield from ['', ' ', '{}', '{} ', ' \n\t\r{}', '{}{}', '{} x', '[]', ' []', '{' + F32 + '}', '{' + F32 + '}\n\n', '\ufeff{}']
    for value in VALUES:
        yield value
        yield '{"a":%s}' % value
        yield '{%s,"b":%s}' % (F32, value)
        yield '{"b":%s,%s}' % (value, F32)
        yield '{"__metadata__":%s,%s}' % (value, F32)
        yield '{"__metadata__":{"k":%s},%s}' % (value, F32)
        yield '{\n"a":{"dtype":%s,"shape":[2],"data_offsets":[0,8]}}' % value
        yield '{"a":{"dtype":"F32",\n"shape":%s,"data_offsets":[0,8]}}' % value
        yield '{"a":{"dtype":"F32","shape":[%s],"data_offsets":[0,8]}}' % value
        yield '{"a":{"dtype":"F32","shape":[2],"data_offsets":%s}}' % value
        yield '{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,%s]}}' % value
        yield '{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"more":%s}}' % value
    for dtype in DTYPES:
        for shape, size in (([8], 8), ([2, 2], 2), ([3], 8), ([1], 8), ([4], 3), ([], 1), ([0], 0), ([0, 5], 0)):
            yield '{"a":{"dtype":"%s","shape":%s,"data_offsets":[0,%d]}}' % (dtype, json.dumps(shape), size)
    for offsets in ('[0,8]', '[8,16]', '[8,8]', '[4,12]', '[16,8]', '[0,0]', '[9,17]', '[8,18446744073709551615]'):
        for name in ('a', 'b', '', 'é', '__metadata__', 'quote\\"'):
            yield '{%s,"%s":{"dtype":"F32","shape":[2],"data_offsets":%s}}' % (F32, name, offsets)
    for shape in ('[1099511627776,1099511627776]', '[1099511627776,1099511627776,0]', '[0,1099511627776,1099511627776]', '[4611686018427387904]',
                  '[2305843009213693952]', '[1,1,2]', '[18446744073709551615]', '[18446744073709551615,2]'):
        yield '{"a":{"dtype":"F32","shape":%s,"data_offsets":[0,8]}}' % shape
    for fields in ('"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]', '"shape":[2],"data_offsets":[0,8]', '"dtype":"F32","data_offsets":[0,8]',
                   '"dtype":"F32","shape":[2]', '', '"dtype":"F33","shape":1', '"x":1,"x":2,"dtype":"F32","shape":[2],"data_offsets":[0,8]'):
        yield '{"a":{%s}}' % fields
        yield '{"a":{%s}} x' % fields
        yield '{"a":{%s},"b":}' % fields
    yield '{"__metadata__":{},"__metadata__":{},%s}' % F32
    yield '{"__metadata__":null,"__metadata__":null,%s}' % F32
    yield '{"__metadata__":{"k":"1","k":"2"},%s}' % F32


def damaged(header):
    """Yields copies with one or two bytes changed, removed or inserted."""
    for _ in range(2):
        broken = bytearray(header)
        for _ in range(random.randint(1, 2)):
            at = random.randrange(len(broken) + 1)
            how = random.randrange(3)
            byte = random.choice(b'{}[]",:0129.-eE \n\\ntfux\x00\x1f\x80\xc3\xa9\xe2\x82\xed\xa0\xf0\xf4\x90\xff')
            if how == 0:
                broken[at:at + 1] = bytes([byte])
            elif how == 1:
                del broken[at:at + 1]
            else:
                broken[at:at] = bytes([byte])
        yield bytes(broken)


def verdict(header, data):
    try:
        found = safetensors.deserialize(struct.pack('<Q', len(header)) + header + bytes(data))
    except safetensors.SafetensorError as error:
        text = str(error)
        lead = 'Error while deserializing: '
        assert text.startswith(lead), text
        return {'error': text[len(lead):]}
    return {'tensors': {name: [info['dtype'], info['shape'], len(info['data'])] for name, info in found}}


def kind(case):
    return re.sub(r'[`"].*?[`"]|\d+', '#', case.get('error', 'opens'))


def main(max_per_kind=7):
    seen = set()
    kinds = collections.Counter()
    cases = []
    for template in templates():
        header = template.encode()
        for variant in [header, *damaged(header)]:
            if variant in seen:
                continue
            seen.add(variant)
            # skip unstable results: of several tensors at the same offset the library reports any
            if any(verdict(variant, 8) != verdict(variant, 8) for _ in range(20)):
                continue
            case = {'header': variant.hex(), 'data': 8, **verdict(variant, 8)}
            kinds[kind(case)] += 1
            if kinds[kind(case)] <= max_per_kind or 'tensors' in case:
                cases.append(case)
    print('[' + ',\n'.join(json.dumps(case, separators=(',', ':')) for case in cases) + ']')


main()
