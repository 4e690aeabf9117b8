#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstring>
#include <hortator/datasets/token_windows.hpp>
#include <hortator/error.hpp>

#include "core/text/text.hpp"
#include "formats/file/file_error.hpp"
#include "formats/file/fixed_file.hpp"

namespace hortator {

namespace data {

/// A long text of tokens with random access.
class Tokens {
 public:
  virtual ~Tokens() = default;
  virtual std::int64_t size() const = 0;
  virtual at::ScalarType type() const = 0;
  virtual void read(std::int64_t first, std::int64_t count, void* to) const = 0;
};

namespace {

class TokensInMemory final : public Tokens {
 public:
  explicit TokensInMemory(const at::Tensor& tokens) {
    if (tokens.dim() != 1 || !at::isIntegralType(tokens.scalar_type(), false)) {
      throw UsageError({.what = text::concat("Tokens must be a list of whole numbers, got ", tokens.scalar_type(), " ",
                                             tokens.sizes())});
    }
    tokens_ = tokens.cpu().contiguous();
  }

  std::int64_t size() const override { return tokens_.numel(); }
  at::ScalarType type() const override { return tokens_.scalar_type(); }
  void read(std::int64_t first, std::int64_t count, void* to) const override {
    const auto size = static_cast<std::int64_t>(tokens_.element_size());
    std::memcpy(to, static_cast<const std::byte*>(tokens_.const_data_ptr()) + first * size,
                static_cast<std::size_t>(count * size));
  }

 private:
  at::Tensor tokens_;
};

at::ScalarType scalar_type_of(TokenType type) {
  switch (type) {
    case TokenType::byte:
      return at::kByte;
    case TokenType::uint16:
      return at::kUInt16;
    default:
      return at::kUInt32;
  }
}

/// Tokens of several files, one after the other.
class TokensInFiles final : public Tokens {
 public:
  TokensInFiles(const std::vector<std::filesystem::path>& paths, TokenType type)
      : type_(scalar_type_of(type)), token_bytes_(static_cast<std::int64_t>(c10::elementSize(type_))) {
    if (paths.empty()) throw UsageError({.what = "No files of tokens are named"});
    for (const auto& path : paths) add(path);
  }

  std::int64_t size() const override { return size_; }
  at::ScalarType type() const override { return type_; }

  void read(std::int64_t first, std::int64_t count, void* to) const override {
    auto* bytes = static_cast<std::byte*>(to);
    auto part = std::prev(std::ranges::upper_bound(parts_, first, {}, &TokenFile::first));
    for (; count > 0; ++part) {
      const auto within = first - part->first;
      const auto taken = std::min(count, part->tokens - within);
      const auto taken_bytes = static_cast<std::size_t>(taken * token_bytes_);
      part->file.read_at(static_cast<std::uint64_t>(within * token_bytes_), bytes, taken_bytes);
      part->file.require_unchanged();
      bytes += taken_bytes;
      first += taken;
      count -= taken;
    }
  }

 private:
  struct TokenFile {
    formats::FixedFile file;
    std::int64_t first;
    std::int64_t tokens;
  };

  void add(const std::filesystem::path& path) {
    formats::FixedFile file(path);
    const auto bytes = static_cast<std::int64_t>(file.bytes());
    if (bytes % token_bytes_ != 0) {
      throw formats::FileError(
          {.what = text::concat(path, " has ", bytes, " bytes, expected whole tokens of ", token_bytes_),
           .hint = "it was truncated, or its tokens have another type"});
    }
    const auto tokens = bytes / token_bytes_;
    if (tokens > 0) parts_.push_back({.file = std::move(file), .first = size_, .tokens = tokens});
    size_ += tokens;
  }

  at::ScalarType type_;
  std::int64_t token_bytes_;
  std::vector<TokenFile> parts_;
  std::int64_t size_ = 0;
};

}  // namespace
}  // namespace data

TokenWindows::TokenWindows(const std::vector<std::filesystem::path>& files, const TokenWindowsOptions& options)
    : TokenWindows(std::make_shared<const data::TokensInFiles>(files, options.type), options) {}

TokenWindows::TokenWindows(const at::Tensor& tokens, const TokenWindowsOptions& options)
    : TokenWindows(std::make_shared<const data::TokensInMemory>(tokens), options) {}

TokenWindows::TokenWindows(std::shared_ptr<const data::Tokens> tokens, const TokenWindowsOptions& options)
    : tokens_(std::move(tokens)), context_(options.context), count_(options.count) {
  if (context_ < 1 || count_ < 0)
    throw UsageError({.what = text::concat("A data set cannot have ", count_, " windows of ", context_, " tokens")});
  if (tokens_->size() <= context_) {
    throw UsageError({.what = text::concat("A text of ", text::count(tokens_->size(), "token"),
                                           " is too short for a context of ", context_),
                      .hint = "add more text, or use a smaller context"});
  }
  if (count_ == 0) count_ = (tokens_->size() - 1) / context_;
}

// Evenly spaced: window * last / (count - 1), computed without overflow.
std::int64_t TokenWindows::start(std::int64_t window) const {
  const auto last = tokens_->size() - context_ - 1;
  const auto gaps = std::max<std::int64_t>(count_ - 1, 1);
  return window * (last / gaps) + window * (last % gaps) / gaps;
}

torch::data::Example<> TokenWindows::get(std::int64_t window) const {
  const auto batch = get_batch({&window, 1});
  return {batch.data[0], batch.target[0]};
}

torch::data::Example<> TokenWindows::get_batch(std::span<const std::int64_t> windows) const {
  const auto length = context_ + 1;
  const auto raw = at::empty({static_cast<std::int64_t>(windows.size()), length}, tokens_->type());
  auto* to = static_cast<std::byte*>(raw.mutable_data_ptr());
  for (const auto window : windows) {
    if (window < 0 || window >= count_)
      throw UsageError({.what = text::concat("There is no window ", window, ", expected 0 to ", count_ - 1)});
    tokens_->read(start(window), length, to);
    to += static_cast<std::size_t>(length) * raw.element_size();
  }
  const auto tokens = raw.to(at::kLong);
  return {tokens.slice(1, 0, -1).contiguous(), tokens.slice(1, 1).contiguous()};
}

}  // namespace hortator
