#include "formats/torch/pickle/machine.hpp"

#include <optional>

#include "core/text/text.hpp"
#include "formats/torch/pickle/input.hpp"
#include "formats/torch/pickle/pickled_tensor.hpp"
#include "formats/torch/pickle/stack.hpp"

namespace hortator::formats {
namespace pickle {
namespace {

constexpr std::string_view ordered_dict = "collections.OrderedDict";
constexpr std::string_view size_class = "torch.Size";

/// A value takes at least one byte, but two bytes can repeat an earlier value with all its elements.
constexpr std::size_t max_values_per_byte = 4;
/// Objects repeat the name of their class, and all of their arguments.
constexpr std::size_t max_class_name_bytes = 1024;
constexpr std::size_t max_arguments_per_byte = 16;

class PickleMachine {
 public:
  PickleMachine(std::string_view pickle, const StorageBytes& storages, ForeignObjects foreign)
      : input_(pickle), storages_(storages), foreign_(foreign) {}

  PickleValue run() {
    if (input_.code() != Code::protocol) input_.fail("it does not begin as a pickle");
    if (const int protocol = input_.byte(); protocol < 2 || protocol > 5)
      input_.fail(text::concat("it is of protocol ", protocol, ", not of 2 to 5"));
    for (auto code = input_.code(); code != Code::stop; code = input_.code()) step(code);
    auto* root = stack_.pop();
    if (!stack_.empty()) input_.fail("it ends with values left on the stack");
    return tree_of(root, max_values_per_byte * input_.bytes(), foreign_);
  }

 private:
  Ref long_number() {
    const auto value = input_.long_number();
    return value ? heap_.make(*value) : heap_.make(PickleValue::Huge{});
  }

  void append(const std::vector<Ref>& items) {
    auto& object = *stack_.top();
    if (auto* list = std::get_if<List>(&object.content)) {
      list->items.insert(list->items.end(), items.begin(), items.end());
    } else if (!std::holds_alternative<Foreign>(object.content)) {
      input_.fail("it appends to a value that is not a list");
    }
  }

  void set(const std::vector<Ref>& items) {
    if (items.size() % 2 != 0) input_.fail("it sets a name without a value");
    auto& object = *stack_.top();
    if (auto* dict = std::get_if<Dict>(&object.content)) {
      for (std::size_t i = 0; i < items.size(); i += 2) dict->items.emplace_back(items[i], items[i + 1]);
    } else if (!std::holds_alternative<Foreign>(object.content)) {
      input_.fail("it sets items of a value that is not a dict");
    }
  }

  Ref class_named(const std::string& module, const std::string& name) {
    if (module.size() + name.size() > max_class_name_bytes) input_.fail("it names a class by a text that is too long");
    return heap_.make(Class{.name = module + "." + name});
  }

  Ref foreign(const std::string& name, const std::vector<Ref>& arguments) {
    if (arguments.size() > arguments_left_) input_.fail("it repeats far more arguments than it has bytes");
    arguments_left_ -= arguments.size();
    return heap_.make(Foreign{.name = name, .arguments = arguments});
  }

  void name_class() {
    const auto module = input_.line();
    stack_.push(class_named(module, input_.line()));
  }

  void name_class_on_stack() {
    const auto* name = std::get_if<std::string>(&stack_.pop()->content);
    const auto* module = std::get_if<std::string>(&stack_.pop()->content);
    if (name == nullptr || module == nullptr) input_.fail("it names a class by a value that is not a text");
    stack_.push(class_named(*module, *name));
  }

  /// Bytes of Python, such as states of random numbers, are of no use here.
  Ref skipped_bytes(std::uint64_t count) {
    if (foreign_ == ForeignObjects::refused) refuse_foreign("bytes");
    input_.skip(count);
    return heap_.make(Foreign{.name = "bytes"});
  }

  void reduce() {
    const auto* arguments = std::get_if<Tuple>(&stack_.pop()->content);
    auto* callee = stack_.pop();
    const auto* called = std::get_if<Class>(&callee->content);
    if (arguments == nullptr || called == nullptr) input_.fail("it calls a value that is not a class");
    stack_.push(made_by(called->name, *arguments));
  }

  Ref made_by(const std::string& name, const Tuple& arguments) {
    if (name == "torch._utils._rebuild_tensor_v2") return heap_.make(rebuild_tensor(arguments));
    if (name == "torch._utils._rebuild_tensor_v3") return heap_.make(rebuild_tensor_of_type(arguments));
    if (name == "torch._utils._rebuild_parameter") return heap_.make(rebuild_parameter(arguments));
    if (name == "torch._tensor._rebuild_from_type_v2") return made_with_attributes(arguments);
    if (name == ordered_dict && arguments.items.empty()) return heap_.make(Dict{});
    if (name == size_class && arguments.items.size() == 1 &&
        std::holds_alternative<Tuple>(arguments.items.front()->content))
      return arguments.items.front();
    if (foreign_ == ForeignObjects::refused) refuse_foreign(name);
    return foreign(name, arguments.items);
  }

  /// A tensor with attributes of its own, which are dropped: the arguments are the function that makes it, its class,
  /// the function's arguments, and the attributes.
  Ref made_with_attributes(const Tuple& arguments) {
    const bool is_call = arguments.items.size() == 4;
    const auto* function = is_call ? std::get_if<Class>(&arguments.items[0]->content) : nullptr;
    const auto* inner = is_call ? std::get_if<Tuple>(&arguments.items[2]->content) : nullptr;
    if (function == nullptr || inner == nullptr || !function->name.starts_with("torch._utils._rebuild_"))
      input_.fail("it rebuilds a tensor by a value that is not a function for it");
    return made_by(function->name, *inner);
  }

  // Sets the attributes of an object. Those of a dict, such as the versions of a state dict's modules, are dropped.
  void build() {
    auto* state = stack_.pop();
    auto& object = *stack_.top();
    if (auto* foreign = std::get_if<Foreign>(&object.content)) {
      foreign->arguments.push_back(state);
    } else if (!std::holds_alternative<Dict>(object.content)) {
      input_.fail("it sets attributes of a value that has none");
    }
  }

  void new_object() {
    const auto* arguments = std::get_if<Tuple>(&stack_.pop()->content);
    const auto* called = std::get_if<Class>(&stack_.pop()->content);
    if (arguments == nullptr || called == nullptr) input_.fail("it creates an object of a value that is not a class");
    if (foreign_ == ForeignObjects::refused) refuse_foreign(called->name);
    stack_.push(foreign(called->name, arguments->items));
  }

  void persistent() {
    const auto* identifier = std::get_if<Tuple>(&stack_.pop()->content);
    if (identifier == nullptr) input_.fail("it refers to a persistent object without its identifier");
    auto storage = storage_of(*identifier);
    const auto stored = storages_(storage.name);
    const auto bytes = static_cast<std::uint64_t>(storage.size) * (storage.type ? c10::elementSize(*storage.type) : 1);
    if (bytes > stored.value_or(0)) {
      input_.fail(text::concat("its storage ", text::quote(storage.name), " of ", bytes, " bytes ",
                               stored ? text::concat("has ", *stored) : "is missing"));
    }
    stack_.push(heap_.make(std::move(storage)));
  }

  /// The value that an instruction makes, or nothing for one that changes what is there.
  std::optional<Ref> made_by(Code code) {
    switch (code) {
      case Code::none:
        return heap_.make(nullptr);
      case Code::new_true:
        return heap_.make(true);
      case Code::new_false:
        return heap_.make(false);
      case Code::int_8:
        return heap_.make(std::int64_t{input_.byte()});
      case Code::int_16:
        return heap_.make(std::int64_t{input_.number<std::uint16_t>()});
      case Code::int_32:
        return heap_.make(std::int64_t{input_.number<std::int32_t>()});
      case Code::long_1:
        return long_number();
      case Code::real:
        return heap_.make(input_.real());
      case Code::text:
        return heap_.make(input_.text(input_.number<std::uint32_t>()));
      case Code::short_text:
        return heap_.make(input_.text(input_.byte()));
      case Code::long_text:
        return heap_.make(input_.text(input_.number<std::uint64_t>()));
      case Code::short_bytes:
        return skipped_bytes(input_.byte());
      case Code::bytes:
        return skipped_bytes(input_.number<std::uint32_t>());
      case Code::ascii:
        return heap_.make(input_.text(input_.byte()));
      case Code::empty_tuple:
        return heap_.make(Tuple{});
      case Code::tuple:
        return heap_.make(Tuple{stack_.pop_to_mark()});
      case Code::tuple_1:
        return heap_.make(Tuple{stack_.pop_many(1)});
      case Code::tuple_2:
        return heap_.make(Tuple{stack_.pop_many(2)});
      case Code::tuple_3:
        return heap_.make(Tuple{stack_.pop_many(3)});
      case Code::empty_list:
        return heap_.make(List{});
      case Code::empty_dict:
        return heap_.make(Dict{});
      default:
        return {};
    }
  }

  void step(Code code) {
    if (auto value = made_by(code)) return stack_.push(*value);
    switch (code) {
      case Code::mark:
        return stack_.mark();
      case Code::global:
        return name_class();
      case Code::stack_global:
        return name_class_on_stack();
      case Code::frame:
        return input_.skip(sizeof(std::uint64_t));
      case Code::memoize:
        return stack_.remember_next();
      case Code::persistent:
        return persistent();
      case Code::append:
        return append(stack_.pop_many(1));
      case Code::appends:
        return append(stack_.pop_to_mark());
      case Code::set_item:
        return set(stack_.pop_many(2));
      case Code::set_items:
        return set(stack_.pop_to_mark());
      case Code::put:
        return stack_.remember(input_.byte());
      case Code::long_put:
        return stack_.remember(input_.number<std::uint32_t>());
      case Code::get:
        return stack_.recall(input_.byte());
      case Code::long_get:
        return stack_.recall(input_.number<std::uint32_t>());
      case Code::reduce:
        return reduce();
      case Code::new_object:
        return new_object();
      case Code::build:
        return build();
      default:
        break;
    }
    input_.fail(text::concat("it has an instruction ", static_cast<int>(code), " that state dicts do not have"));
  }

  Input input_;
  std::size_t arguments_left_ = max_arguments_per_byte * input_.bytes();
  const StorageBytes& storages_;
  ForeignObjects foreign_;
  Heap heap_;
  Stack stack_{input_};
};

}  // namespace
}  // namespace pickle

PickleValue parse_pickle(std::string_view bytes, const StorageBytes& storages, ForeignObjects foreign) {
  return pickle::PickleMachine(bytes, storages, foreign).run();
}

}  // namespace hortator::formats
