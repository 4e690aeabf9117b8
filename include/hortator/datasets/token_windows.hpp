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

/// The type of a token in a file.
enum class TokenType { byte, uint16, uint32 };

/// Options of TokenWindows.
struct TokenWindowsOptions {
  std::int64_t context = 1024;  ///< tokens in a window
  std::int64_t count = 0;  ///< number of windows, evenly spaced, overlapping if there are many; 0: adjacent windows
  TokenType type = TokenType::byte;  ///< for files; plain text is a file of bytes
};

/// Windows over a long text of tokens, for language models: int64 [context], with the same window one token later as
/// target. Several files are read as one text; none of it is kept in memory.
class HORTATOR_API TokenWindows {
 public:
  TokenWindows(const std::vector<std::filesystem::path>& files, const TokenWindowsOptions& options);
  /// Uses tokens in memory: a one-dimensional tensor of whole numbers. Ignores TokenWindowsOptions::type.
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
