#pragma once

#include <torch/data/example.h>

#include <cstdint>
#include <filesystem>
#include <hortator/export.hpp>
#include <memory>
#include <span>
#include <vector>

namespace hortator {

namespace data {
class Tokens;
}

/// How a token lies in a file.
enum class TokenType { byte, uint16, uint32 };

/// Of TokenWindows.
struct TokenWindowsOptions {
  std::int64_t context = 1024;       ///< tokens that a window has
  std::int64_t count = 0;            ///< windows, evenly spaced, overlapping where there are many; 0: side by side
  TokenType type = TokenType::byte;  ///< of files: text is a file of bytes
};

/// Windows over a long text of tokens, for language models: int64 [context], and as target the same one token later.
/// Files are one text, one after the other, and none of it is kept in memory.
class HORTATOR_API TokenWindows {
 public:
  TokenWindows(const std::vector<std::filesystem::path>& files, const TokenWindowsOptions& options);
  /// Of tokens in memory: whole numbers, one-dimensional. The options' `type` has no meaning here.
  TokenWindows(const at::Tensor& tokens, const TokenWindowsOptions& options);

  std::int64_t size() const { return count_; }
  torch::data::Example<> get(std::int64_t window) const;
  torch::data::Example<> get_batch(std::span<const std::int64_t> windows) const;

 private:
  TokenWindows(std::shared_ptr<const data::Tokens> tokens, const TokenWindowsOptions& options);
  std::int64_t start(std::int64_t window) const;

  std::shared_ptr<const data::Tokens> tokens_;
  std::int64_t context_;
  std::int64_t count_;
};

}  // namespace hortator
