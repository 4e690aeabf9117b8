#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "formats/torch/pickle/machine.hpp"

/// What stands on the stack of the machine that reads pickles. Objects may be part of several others, and of
/// themselves: all belong to one heap, and go together.
namespace hortator::formats::pickle {

struct Object;
using Ref = Object*;

struct Class {
  std::string name = {};  ///< with its module: "collections.OrderedDict"
};
struct Storage {
  std::optional<at::ScalarType> type = {};  ///< nothing: untyped
  std::string name = {};
  std::int64_t size = 0;  ///< in elements, or in bytes where it is untyped
};
struct Tuple {
  std::vector<Ref> items = {};
};
struct List {
  std::vector<Ref> items = {};
};
struct Dict {
  std::vector<std::pair<Ref, Ref>> items = {};
};
struct Foreign {
  std::string name = {};
  std::vector<Ref> arguments = {};
};

struct Object {
  std::variant<std::nullptr_t, bool, std::int64_t, double, std::string, PickleValue::Huge, PickledTensor, Class,
               Storage, Tuple, List, Dict, Foreign>
      content = nullptr;
};

class Heap {
 public:
  template <typename Content>
  Ref make(Content content) {
    return &objects_.emplace_back(Object{std::move(content)});
  }

 private:
  std::deque<Object> objects_;  // which stay where they are
};

/// The tree of what can be reached from `root`: what is part of several objects is there several times. PickleFault
/// when it is nested too deep, has more than `most` values, or something foreign that is refused.
PickleValue tree_of(Ref root, std::size_t most, ForeignObjects foreign);

[[noreturn]] void refuse_foreign(const std::string& name);

}  // namespace hortator::formats::pickle
