#include "formats/torch/pickle/saved_object.hpp"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <hortator/bigmodel/torch_file.hpp>
#include <hortator/error.hpp>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/text/text.hpp"
#include "formats/torch/pickle/file.hpp"
#include "formats/torch/pickle/value.hpp"
#include "formats/torch/pickle/value_writer.hpp"

namespace hortator {
namespace {

using formats::PickleValue;

/// An object as a value to pickle, whose tensors are taken apart.
class Pickled {
 public:
  PickleValue value_of(const SavedObject& object) {
    return std::visit([&self = *this](const auto& content) { return PickleValue{.content = self.of(content)}; },
                      object.content());
  }
  const std::map<std::string, at::Tensor>& tensors() const { return tensors_; }

 private:
  template <typename T>
  static T of(const T& content) {
    return content;
  }
  formats::PickledTensor of(const at::Tensor& tensor) {
    auto name = std::to_string(tensors_.size());
    formats::PickledTensor pickled{.spec = formats::spec_of(tensor), .storage = name};
    tensors_.emplace(std::move(name), tensor.detach());
    return pickled;
  }
  PickleValue::List of(const SavedObject::List& list) {
    PickleValue::List items;
    for (const auto& item : list) items.push_back(value_of(item));
    return items;
  }
  PickleValue::Dict of(const SavedObject::Dict& dict) {
    PickleValue::Dict items;
    for (const auto& [key, item] : dict) {
      require_key(key);
      auto name = value_of(key);
      items.emplace_back(std::move(name), value_of(item));
    }
    return items;
  }
  static void require_key(const SavedObject& key) {
    if (std::holds_alternative<std::string>(key.content()) || std::holds_alternative<std::int64_t>(key.content()))
      return;
    throw UsageError({.what = "A dict to be saved has a key that is neither text nor a whole number",
                      .why = "Python finds entries by such keys",
                      .hint = "use a list of pairs"});
  }

  std::map<std::string, at::Tensor> tensors_;
};

/// A value of a file as an object.
class Unpickled {
 public:
  explicit Unpickled(const formats::PickleFile& file) : file_(file) {}

  SavedObject object_of(const PickleValue& value) const {
    return std::visit([&self = *this](const auto& content) { return self.of(content); }, value.content);
  }

 private:
  template <typename T>
  static SavedObject of(const T& content) {
    return SavedObject(SavedObject::Content(content));
  }
  SavedObject of(const formats::PickledTensor& tensor) const { return of(file_.get(tensor)); }
  SavedObject of(const PickleValue::List& list) const {
    SavedObject::List items;
    for (const auto& item : list) items.push_back(object_of(item));
    return of(items);
  }
  SavedObject of(const PickleValue::Tuple& tuple) const { return of(tuple.items); }
  SavedObject of(const PickleValue::Dict& dict) const {
    SavedObject::Dict items;
    for (const auto& [key, item] : dict) items.emplace_back(object_of(key), object_of(item));
    return of(items);
  }
  [[noreturn]] SavedObject of(const PickleValue::Foreign& object) const { refuse("an object of " + object.name); }
  [[noreturn]] SavedObject of(const PickleValue::Huge&) const { refuse("a number beyond 64 bits"); }
  [[noreturn]] void refuse(const std::string& what) const {
    throw Error({.what = text::concat(file_.path(), " holds ", what),
                 .why = "load() returns numbers, texts, tensors, lists and dicts"});
  }

  const formats::PickleFile& file_;
};

const char* kind_of(const SavedObject::Content& content) {
  constexpr const char* names[] = {"None", "a truth value", "a whole number", "a number",
                                   "text", "a tensor",      "a list",         "a dict"};
  return names[content.index()];
}

std::vector<std::string> texts_in(const SavedObject::Dict& dict) {
  std::vector<std::string> keys;
  for (const auto& [key, item] : dict) {
    if (const auto* text = std::get_if<std::string>(&key.content())) keys.push_back(*text);
  }
  return keys;
}

const SavedObject* find_in(const SavedObject::Dict& dict, std::string_view key) {
  const auto found = std::ranges::find_if(dict, [&](const auto& item) {
    const auto* text = std::get_if<std::string>(&item.first.content());
    return text != nullptr && *text == key;
  });
  return found == dict.end() ? nullptr : &found->second;
}

}  // namespace

void formats::write_object(const std::filesystem::path& path, const SavedObject& object) {
  Pickled pickled;
  const auto value = pickled.value_of(object);
  write_pickle_value(path, value, [&](const std::string& storage) { return pickled.tensors().at(storage); });
}

SavedObject load(const std::filesystem::path& file) {
  const formats::PickleFile opened(file);
  return Unpickled(opened).object_of(opened.value());
}

SavedObject::Content SavedObject::whole(bool fits, std::int64_t value) {
  if (fits) return value;
  throw UsageError({.what = "A number to be saved has more than 64 bits"});
}

void SavedObject::refuse(const char* expected) const {
  throw UsageError({.what = text::concat("A saved object is ", kind_of(content_), ", expected ", expected)});
}

template <typename T>
const T& SavedObject::get() const {
  if (const auto* value = std::get_if<T>(&content_)) return *value;
  refuse(kind_of(Content(T())));
}
template const bool& SavedObject::get() const;
template const std::int64_t& SavedObject::get() const;
template const std::string& SavedObject::get() const;
template const at::Tensor& SavedObject::get() const;
template const SavedObject::List& SavedObject::get() const;
template const SavedObject::Dict& SavedObject::get() const;

double SavedObject::real() const {
  if (const auto* number = std::get_if<std::int64_t>(&content_)) return static_cast<double>(*number);
  if (const auto* number = std::get_if<double>(&content_)) return *number;
  refuse("a number");
}

std::size_t SavedObject::size() const {
  if (const auto* list = std::get_if<List>(&content_)) return list->size();
  return get<Dict>().size();
}

bool SavedObject::contains(std::string_view key) const { return find_in(get<Dict>(), key) != nullptr; }

const SavedObject& SavedObject::at(std::string_view key) const {
  const auto& dict = get<Dict>();
  if (const auto* found = find_in(dict, key)) return *found;
  throw UsageError({.what = text::concat("A saved dict has no entry ", text::quote(key)),
                    .hint = text::suggestion(std::string(key), texts_in(dict))});
}

const SavedObject& SavedObject::at(std::size_t position) const {
  const auto& list = get<List>();
  if (position < list.size()) return list[position];
  throw UsageError({.what = text::concat("A saved list of ", list.size(), " items has none at ", position)});
}

TorchFile::TorchFile(const std::filesystem::path& path) : file_(std::make_shared<const formats::PickleFile>(path)) {}
const std::filesystem::path& TorchFile::path() const { return file_->path(); }
const std::vector<std::string>& TorchFile::names() const { return file_->names(); }
bool TorchFile::contains(const std::string& name) const { return file_->contains(name); }
at::ScalarType TorchFile::type(const std::string& name) const { return file_->spec(name).type; }
std::vector<std::int64_t> TorchFile::shape(const std::string& name) const { return file_->spec(name).shape; }
at::Tensor TorchFile::get(const std::string& name) const { return file_->get(name); }
at::Tensor TorchFile::get_rows(const std::string& name, std::int64_t first, std::int64_t count) const {
  return file_->get_rows(name, first, count);
}
at::Tensor TorchFile::view(const std::string& name) const { return file_->view(name); }

}  // namespace hortator
