#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace hortator::test {

/// Writes small GGUF files, also invalid ones.
class GgufFile {
 public:
  static constexpr std::uint32_t u32 = 4, i32 = 5, f32 = 6, boolean = 7, text = 8, list = 9;

  std::uint32_t version = 3;

  void set(const std::string& name, std::uint32_t value) {
    begin_value(name, u32);
    append(values_, value);
  }
  void set(const std::string& name, int value) { set(name, static_cast<std::uint32_t>(value)); }
  void set(const std::string& name, float value) {
    begin_value(name, f32);
    append(values_, value);
  }
  void set(const std::string& name, const std::string& value) {
    begin_value(name, text);
    append_text(values_, value);
  }
  void set(const std::string& name, const char* value) { set(name, std::string(value)); }
  void set(const std::string& name, bool value) {
    begin_value(name, boolean);
    values_ += value ? '\1' : '\0';
  }
  void set(const std::string& name, const std::vector<std::string>& values) {
    begin_list(name, text, values.size());
    for (const auto& value : values) append_text(values_, value);
  }
  void set(const std::string& name, const std::vector<float>& values) {
    begin_list(name, f32, values.size());
    for (const auto value : values) append(values_, value);
  }
  void set(const std::string& name, const std::vector<std::int32_t>& values) {
    begin_list(name, i32, values.size());
    for (const auto value : values) append(values_, value);
  }
  /// `shape` in LibTorch's order. `bytes` are appended to the data, at the next multiple of 32, or where `offset` says.
  void add(const std::string& name, std::vector<std::uint64_t> shape, std::uint32_t type, const std::string& bytes) {
    data_.resize((data_.size() + 31) / 32 * 32, '\0');
    add_at(name, std::move(shape), type, data_.size());
    data_ += bytes;
  }
  void add_at(const std::string& name, std::vector<std::uint64_t> shape, std::uint32_t type, std::uint64_t offset) {
    append_text(tensors_, name);
    append(tensors_, static_cast<std::uint32_t>(shape.size()));
    for (auto size = shape.rbegin(); size != shape.rend(); ++size) append(tensors_, *size);
    append(tensors_, type);
    append(tensors_, offset);
    ++tensor_count_;
  }
  /// Adds a float32 tensor.
  void add(const std::string& name, const at::Tensor& tensor) {
    const auto flat = tensor.contiguous();
    add(name, {flat.sizes().begin(), flat.sizes().end()}, 0,
        std::string(static_cast<const char*>(flat.const_data_ptr()), flat.nbytes()));
  }

  std::string bytes() const {
    std::string all = "GGUF";
    append(all, version);
    append(all, tensor_count_);
    append(all, value_count_);
    all += values_ + tensors_;
    all.resize((all.size() + 31) / 32 * 32, '\0');
    return all + data_;
  }
  void write(const std::filesystem::path& path) const { std::ofstream(path, std::ios::binary) << bytes(); }

 private:
  template <typename Number>
  static void append(std::string& to, Number number) {
    to.append(reinterpret_cast<const char*>(&number), sizeof number);
  }
  static void append_text(std::string& to, const std::string& value) {
    append(to, std::uint64_t{value.size()});
    to += value;
  }
  void begin_value(const std::string& name, std::uint32_t type) {
    append_text(values_, name);
    append(values_, type);
    ++value_count_;
  }
  void begin_list(const std::string& name, std::uint32_t type, std::size_t size) {
    begin_value(name, list);
    append(values_, type);
    append(values_, std::uint64_t{size});
  }

  std::string values_, tensors_, data_;
  std::uint64_t value_count_ = 0, tensor_count_ = 0;
};

}  // namespace hortator::test
