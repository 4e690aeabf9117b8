#include <ATen/ATen.h>

#include <algorithm>
#include <hortator/datasets/packed_windows.hpp>
#include <hortator/error.hpp>

#include "core/text/text.hpp"

namespace hortator {

namespace data {

/// All documents as one array of tokens.
class PackedDocuments {
 public:
  PackedDocuments(const std::vector<at::Tensor>& documents, const PackedWindowsOptions& options) : options_(options) {
    if (options.context < 1)
      throw UsageError({.what = text::concat("A window cannot have ", options.context, " tokens")});
    for (const auto& document : documents) add(document);
    if (tokens_.empty()) throw UsageError({.what = "There are no tokens to pack: all documents are empty"});
  }

  std::int64_t tokens() const { return static_cast<std::int64_t>(tokens_.size()); }
  std::int64_t windows() const { return (tokens() + options_.context - 1) / options_.context; }
  std::int64_t context() const { return options_.context; }

  /// Where the columns of one window are written.
  struct WindowRow {
    std::int64_t* ids;
    std::int64_t* targets;
    std::int64_t* positions;
    std::int64_t* documents;
  };

  void write(std::int64_t window, const WindowRow& row) const {
    const auto begin = window * options_.context;
    auto next_document = std::ranges::upper_bound(begins_, begin);
    std::int64_t document = 0, document_begin = begin;
    for (std::int64_t i = 0; i < options_.context; ++i) {
      const auto at = begin + i;
      const bool is_padding = at >= tokens();
      const bool begins = next_document != begins_.end() && at == *next_document;
      if (begins || at == tokens()) {
        if (i > 0) ++document;
        document_begin = at;
        if (begins) ++next_document;
      }
      const bool has_next = at + 1 < tokens() && (next_document == begins_.end() || at + 1 != *next_document);
      row.ids[i] = is_padding ? options_.pad_token : tokens_[static_cast<std::size_t>(at)];
      row.targets[i] = has_next ? tokens_[static_cast<std::size_t>(at + 1)] : no_target;
      row.positions[i] = at - document_begin;
      row.documents[i] = document;
    }
  }

 private:
  static constexpr std::int64_t no_target = -100;  // ignored by LibTorch's cross-entropy

  void add(const at::Tensor& document) {
    if (document.dim() != 1 || !at::isIntegralType(document.scalar_type(), false)) {
      throw UsageError({.what = text::concat("A document must be a list of whole numbers, got ", document.scalar_type(),
                                             " ", document.sizes())});
    }
    if (document.numel() == 0 && !options_.end_token) return;
    begins_.push_back(tokens());
    const auto values = document.to(at::kLong).cpu().contiguous();
    const auto* first = values.const_data_ptr<std::int64_t>();
    tokens_.insert(tokens_.end(), first, first + values.numel());
    if (options_.end_token) tokens_.push_back(*options_.end_token);
  }

  PackedWindowsOptions options_;
  std::vector<std::int64_t> tokens_;
  std::vector<std::int64_t> begins_;  ///< of the documents
};

}  // namespace data

PackedWindows::PackedWindows(const std::vector<at::Tensor>& documents, const PackedWindowsOptions& options)
    : documents_(std::make_shared<const data::PackedDocuments>(documents, options)) {}

std::int64_t PackedWindows::size() const { return documents_->windows(); }
std::int64_t PackedWindows::tokens() const { return documents_->tokens(); }

PackedTokens PackedWindows::get(std::int64_t window) const {
  auto batch = get_batch({&window, 1});
  return {.ids = batch.ids[0],
          .targets = batch.targets[0],
          .positions = batch.positions[0],
          .documents = batch.documents[0]};
}

PackedTokens PackedWindows::get_batch(std::span<const std::int64_t> windows) const {
  const auto context = documents_->context();
  const auto empty = [&] { return at::empty({static_cast<std::int64_t>(windows.size()), context}, at::kLong); };
  PackedTokens batch{.ids = empty(), .targets = empty(), .positions = empty(), .documents = empty()};
  std::int64_t offset = 0;
  for (const auto window : windows) {
    if (window < 0 || window >= size())
      throw UsageError({.what = text::concat("There is no window ", window, ", expected 0 to ", size() - 1)});
    const auto row = [&](const at::Tensor& tensor) { return tensor.mutable_data_ptr<std::int64_t>() + offset; };
    documents_->write(window, {.ids = row(batch.ids),
                               .targets = row(batch.targets),
                               .positions = row(batch.positions),
                               .documents = row(batch.documents)});
    offset += context;
  }
  return batch;
}

}  // namespace hortator
