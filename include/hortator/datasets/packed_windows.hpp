#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <hortator/export.hpp>
#include <memory>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

namespace hortator {

namespace data {
class PackedDocuments;
}

/// Options of PackedWindows.
struct PackedWindowsOptions {
  std::int64_t context = 1024;                 ///< tokens in a window
  std::optional<std::int64_t> end_token = {};  ///< is appended to each document
  std::int64_t pad_token = 0;                  ///< fills the last window
};

/// Windows of a PackedWindows, or one window: int64 [batch, context] or [context].
struct PackedTokens {
  at::Tensor ids = {};
  at::Tensor targets = {};    ///< the next token of the same document; -100 where there is none, as for padding
  at::Tensor positions = {};  ///< within the document, from 0 in each window
  at::Tensor documents = {};  ///< the document's number within the window, from 0; padding is one of its own

  auto fields() { return std::tie(ids, targets, positions, documents); }
};

/// Documents packed into windows of equal length for language models, one after the other, without padding except in
/// the last window. A document that does not fit into the rest of a window continues in the next. `documents` and
/// `positions` keep documents apart: give them to a model as ModelInputs::document_ids and position_ids. Tokens stay in
/// memory.
class HORTATOR_API PackedWindows {
 public:
  /// Each document is a one-dimensional tensor of whole numbers. Empty ones are left out, unless there is an end_token.
  PackedWindows(const std::vector<at::Tensor>& documents, const PackedWindowsOptions& options);

  std::int64_t size() const;
  std::int64_t tokens() const;  ///< of all documents, with end tokens
  PackedTokens get(std::int64_t window) const;
  PackedTokens get_batch(std::span<const std::int64_t> windows) const;

 private:
  std::shared_ptr<const data::PackedDocuments> documents_;
};

}  // namespace hortator
