#include "formats/torch/pickle/value_writer.hpp"

#include <hortator/error.hpp>

#include "core/text/text.hpp"
#include "formats/torch/pickle/pickler.hpp"

namespace hortator::formats {
namespace {

/// Lists the tensors of a value in the order in which it is pickled.
void collect(const PickleValue& value, NamedSpecs& tensors) {
  if (const auto* tensor = std::get_if<PickledTensor>(&value.content)) {
    tensors.emplace_back(tensor->storage, tensor->spec);
  } else if (const auto* list = std::get_if<PickleValue::List>(&value.content)) {
    for (const auto& item : *list) collect(item, tensors);
  } else if (const auto* tuple = std::get_if<PickleValue::Tuple>(&value.content)) {
    for (const auto& item : tuple->items) collect(item, tensors);
  } else if (const auto* dict = std::get_if<PickleValue::Dict>(&value.content)) {
    for (const auto& [key, item] : *dict) collect(item, tensors);
  }
}

class ValuePickler {
 public:
  explicit ValuePickler(const PicklePlan& plan) : plan_(plan) {}

  std::string pickle(const PickleValue& value) {
    out_.code('\x80');
    out_.code('\2');
    put(value);
    out_.code('.');
    return out_.bytes();
  }

 private:
  void put(const PickleValue& value) {
    std::visit([this](const auto& content) { put_content(content); }, value.content);
  }
  void put_content(std::nullptr_t) { out_.code('N'); }
  void put_content(bool value) { out_.code(value ? '\x88' : '\x89'); }
  void put_content(std::int64_t value) { out_.integer(value); }
  void put_content(double value) { out_.real(value); }
  void put_content(const std::string& value) { out_.text(value); }
  void put_content(const PickledTensor&) {
    const auto& tensor = plan_.tensors[next_].second;
    put_tensor(out_, tensor, plan_.storages[next_++]);
  }
  void put_content(const PickleValue::List& items) {
    out_.code(']');
    out_.code('(');
    for (const auto& item : items) put(item);
    out_.code('e');
  }
  void put_content(const PickleValue::Tuple& tuple) {
    out_.code('(');
    for (const auto& item : tuple.items) put(item);
    out_.code('t');
  }
  void put_content(const PickleValue::Dict& dict) {
    out_.code('}');
    out_.code('(');
    for (const auto& [key, item] : dict) {
      put(key);
      put(item);
    }
    out_.code('u');
  }
  [[noreturn]] void put_content(const PickleValue::Foreign& object) { refuse("an object of " + object.name); }
  [[noreturn]] void put_content(const PickleValue::Huge&) { refuse("a number beyond 64 bits"); }
  [[noreturn]] static void refuse(const std::string& what) {
    throw UsageError({.what = text::concat("A file for Python cannot hold ", what)});
  }

  const PicklePlan& plan_;
  Pickler out_;
  std::size_t next_ = 0;
};

}  // namespace

void write_pickle_value(const std::filesystem::path& path, const PickleValue& value,
                        const std::function<at::Tensor(const std::string& storage)>& source) {
  NamedSpecs tensors;
  collect(value, tensors);
  const auto plan = plan_pickle(tensors);
  write_pickle_archive(path, ValuePickler(plan).pickle(value), tensors.size(),
                       [&](std::size_t storage) { return source(tensors[storage].first); }, {});
}

}  // namespace hortator::formats
