#pragma once

namespace hortator::formats::pickle {

/// The opcodes of the format that torch.save writes; see Python's pickletools.
enum class Code : unsigned char {
  mark = '(',
  stop = '.',
  none = 'N',
  new_true = 0x88,
  new_false = 0x89,
  int_8 = 'K',
  int_16 = 'M',
  int_32 = 'J',
  long_1 = 0x8a,
  real = 'G',
  text = 'X',
  ascii = 'U',
  global = 'c',
  persistent = 'Q',
  empty_tuple = ')',
  tuple = 't',
  tuple_1 = 0x85,
  tuple_2 = 0x86,
  tuple_3 = 0x87,
  empty_list = ']',
  append = 'a',
  appends = 'e',
  empty_dict = '}',
  set_item = 's',
  set_items = 'u',
  put = 'q',
  long_put = 'r',
  get = 'h',
  long_get = 'j',
  reduce = 'R',
  new_object = 0x81,
  build = 'b',
  protocol = 0x80,
};

}  // namespace hortator::formats::pickle
