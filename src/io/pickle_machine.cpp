#include "io/pickle_machine.hpp"

#include <array>
#include <bit>
#include <cstring>
#include <ranges>
#include <unordered_map>

#include "base/text.hpp"
#include "io/pickle_objects.hpp"
#include "io/pickled_tensor.hpp"
#include "io/utf8.hpp"

namespace hortator::io {
namespace pickle {
namespace {

// The letters of the format, as Python's pickletools names them.
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

constexpr std::string_view ordered_dict = "collections.OrderedDict";
constexpr std::string_view size_class = "torch.Size";

/// A value takes a byte at least; two bytes put one once more that was there before, with all of its parts.
constexpr std::size_t most_values_a_byte = 4;

class Machine {
 public:
  Machine(std::string_view words, const StorageBytes& storages, ForeignObjects foreign)
      : pickle_(words), storages_(storages), foreign_(foreign) {}

  PickleValue run() {
    if (byte() != static_cast<unsigned char>(Code::protocol)) fail("it does not begin as a pickle does");
    if (const int protocol = byte(); protocol != 2) {
      fail(text::concat("it is of protocol ", protocol, ", not 2: leave out pickle_protocol in Python's torch.save"));
    }
    for (auto code = Code{byte()}; code != Code::stop; code = Code{byte()}) step(code);
    auto* root = pop();
    if (!stack_.empty() || !marks_.empty()) fail("it ends with values that belong to nothing");
    return tree_of(root, most_values_a_byte * pickle_.size(), foreign_);
  }

 private:
  [[noreturn]] void fail(std::string_view why) const {
    throw PickleFault(text::concat(why, " (at byte ", at_, " of the pickle)"));
  }
  // --- bytes

  std::string_view take(std::uint64_t count) {
    if (count > pickle_.size() - at_) fail("it ends too early");
    const auto taken = pickle_.substr(at_, count);
    at_ += count;
    return taken;
  }
  template <typename Number>
  Number number() {
    Number value{};
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  unsigned char byte() { return number<unsigned char>(); }

  std::string words(std::uint64_t bytes) {
    const auto taken = take(bytes);
    if (find_utf8_fault(taken)) fail("it holds a text that is not UTF-8");
    return std::string(taken);
  }

  std::string line() {
    const auto end = pickle_.find('\n', at_);
    if (end == std::string_view::npos) fail("it ends within a name");
    auto taken = words(end - at_);
    ++at_;
    return taken;
  }

  // Little-endian, two's complement, of any length.
  Ref long_number() {
    const auto digits = take(byte());
    if (digits.size() > sizeof(std::int64_t)) return heap_.make(PickleValue::Huge{});
    std::uint64_t value = !digits.empty() && (digits.back() & 0x80) != 0 ? ~std::uint64_t{0} : 0;
    if (!digits.empty()) std::memcpy(&value, digits.data(), digits.size());
    return heap_.make(std::bit_cast<std::int64_t>(value));
  }

  double real() {
    auto bits = number<std::uint64_t>();
    bits = __builtin_bswap64(bits);
    return std::bit_cast<double>(bits);
  }

  // --- the stack

  void push(Ref object) { stack_.push_back(object); }
  Ref pop() {
    if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) fail("it takes a value where there is none");
    auto* object = stack_.back();
    stack_.pop_back();
    return object;
  }
  Ref top() {
    auto* object = pop();
    push(object);
    return object;
  }
  std::vector<Ref> pop_to_mark() {
    if (marks_.empty()) fail("it ends a list that never began");
    std::vector<Ref> items(stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back()), stack_.end());
    stack_.resize(marks_.back());
    marks_.pop_back();
    return items;
  }
  std::vector<Ref> pop_many(std::size_t count) {
    std::vector<Ref> items(count);
    for (auto& item : std::ranges::reverse_view(items)) item = pop();
    return items;
  }

  void remember(std::uint32_t place) { memo_[place] = top(); }
  void recall(std::uint32_t place) {
    const auto found = memo_.find(place);
    if (found == memo_.end()) fail(text::concat("it refers to a value ", place, " that is not there"));
    push(found->second);
  }

  // --- containers and objects

  void append(const std::vector<Ref>& items) {
    auto& object = *top();
    if (auto* list = std::get_if<List>(&object.content)) {
      list->items.insert(list->items.end(), items.begin(), items.end());
    } else if (!std::holds_alternative<Foreign>(object.content)) {
      fail("it appends to what is no list");
    }
  }

  void set(const std::vector<Ref>& items) {
    if (items.size() % 2 != 0) fail("it sets a name without a value");
    auto& object = *top();
    if (auto* dict = std::get_if<Dict>(&object.content)) {
      for (std::size_t i = 0; i < items.size(); i += 2) dict->items.emplace_back(items[i], items[i + 1]);
    } else if (!std::holds_alternative<Foreign>(object.content)) {
      fail("it sets items of what is no dict");
    }
  }

  void name_class() {
    const auto module = line();
    push(heap_.make(Class{.name = module + "." + line()}));
  }

  void reduce() {
    const auto* arguments = std::get_if<Tuple>(&pop()->content);
    auto* callee = pop();
    const auto* called = std::get_if<Class>(&callee->content);
    if (arguments == nullptr || called == nullptr) fail("it calls what is no class");
    push(made_by(called->name, *arguments));
  }

  Ref made_by(const std::string& name, const Tuple& arguments) {
    if (name == "torch._utils._rebuild_tensor_v2") return heap_.make(rebuild_tensor(arguments));
    if (name == "torch._utils._rebuild_tensor_v3") return heap_.make(rebuild_tensor_of_type(arguments));
    if (name == "torch._utils._rebuild_parameter") return heap_.make(rebuild_parameter(arguments));
    if (name == ordered_dict && arguments.items.empty()) return heap_.make(Dict{});
    if (name == size_class && arguments.items.size() == 1 &&
        std::holds_alternative<Tuple>(arguments.items.front()->content))
      return arguments.items.front();
    if (foreign_ == ForeignObjects::refused) refuse_foreign(name);
    return heap_.make(Foreign{.name = name, .arguments = arguments.items});
  }

  // The attributes of an object. Those of a dict are notes beside it, such as the versions of a state dict's modules.
  void build() {
    auto* state = pop();
    auto& object = *top();
    if (auto* foreign = std::get_if<Foreign>(&object.content)) {
      foreign->arguments.push_back(state);
    } else if (!std::holds_alternative<Dict>(object.content)) {
      fail("it gives attributes to what has none");
    }
  }

  void new_object() {
    const auto* arguments = std::get_if<Tuple>(&pop()->content);
    const auto* called = std::get_if<Class>(&pop()->content);
    if (arguments == nullptr || called == nullptr) fail("it makes an object of what is no class");
    if (foreign_ == ForeignObjects::refused) refuse_foreign(called->name);
    push(heap_.make(Foreign{.name = called->name, .arguments = arguments->items}));
  }

  void persistent() {
    const auto* identifier = std::get_if<Tuple>(&pop()->content);
    if (identifier == nullptr) fail("it refers to a persistent object without saying which");
    auto storage = storage_of(*identifier);
    const auto stored = storages_(storage.name);
    const auto bytes = static_cast<std::uint64_t>(storage.size) * (storage.type ? c10::elementSize(*storage.type) : 1);
    if (bytes > stored.value_or(0)) {
      fail(text::concat("its storage ", text::quote(storage.name), " of ", bytes, " bytes ",
                        stored ? text::concat("has ", *stored) : "is missing"));
    }
    push(heap_.make(std::move(storage)));
  }

  void step(Code code) {
    switch (code) {
      case Code::mark:
        return marks_.push_back(stack_.size());
      case Code::none:
        return push(heap_.make(nullptr));
      case Code::new_true:
        return push(heap_.make(true));
      case Code::new_false:
        return push(heap_.make(false));
      case Code::int_8:
        return push(heap_.make(std::int64_t{byte()}));
      case Code::int_16:
        return push(heap_.make(std::int64_t{number<std::uint16_t>()}));
      case Code::int_32:
        return push(heap_.make(std::int64_t{number<std::int32_t>()}));
      case Code::long_1:
        return push(long_number());
      case Code::real:
        return push(heap_.make(real()));
      case Code::text:
        return push(heap_.make(words(number<std::uint32_t>())));
      case Code::ascii:
        return push(heap_.make(words(byte())));
      case Code::global:
        return name_class();
      case Code::persistent:
        return persistent();
      case Code::empty_tuple:
        return push(heap_.make(Tuple{}));
      case Code::tuple:
        return push(heap_.make(Tuple{pop_to_mark()}));
      case Code::tuple_1:
        return push(heap_.make(Tuple{pop_many(1)}));
      case Code::tuple_2:
        return push(heap_.make(Tuple{pop_many(2)}));
      case Code::tuple_3:
        return push(heap_.make(Tuple{pop_many(3)}));
      case Code::empty_list:
        return push(heap_.make(List{}));
      case Code::append:
        return append(pop_many(1));
      case Code::appends:
        return append(pop_to_mark());
      case Code::empty_dict:
        return push(heap_.make(Dict{}));
      case Code::set_item:
        return set(pop_many(2));
      case Code::set_items:
        return set(pop_to_mark());
      case Code::put:
        return remember(byte());
      case Code::long_put:
        return remember(number<std::uint32_t>());
      case Code::get:
        return recall(byte());
      case Code::long_get:
        return recall(number<std::uint32_t>());
      case Code::reduce:
        return reduce();
      case Code::new_object:
        return new_object();
      case Code::build:
        return build();
      case Code::stop:
      case Code::protocol:
        break;
    }
    fail(text::concat("it has an instruction ", static_cast<int>(code), " that state dicts do not have"));
  }

  std::string_view pickle_;
  const StorageBytes& storages_;
  ForeignObjects foreign_;
  std::size_t at_ = 0;
  Heap heap_;
  std::vector<Ref> stack_;
  std::vector<std::size_t> marks_;
  std::unordered_map<std::uint32_t, Ref> memo_;
};

}  // namespace
}  // namespace pickle

PickleValue parse_pickle(std::string_view words, const StorageBytes& storages, ForeignObjects foreign) {
  return pickle::Machine(words, storages, foreign).run();
}

}  // namespace hortator::io
