#pragma once

#include <ATen/core/Tensor.h>

#include <hortator/models/generate.hpp>
#include <hortator/models/key_value_cache.hpp>
#include <set>

namespace hortator::models {

/// Continues prompts by one token after the other, in a batch that texts leave when they end and prompts enter when
/// there is room.
class Decoding {
 public:
  Decoding(PretrainedModel& model, const std::vector<Tokens>& prompts, const GenerateOptions& options);

  std::vector<Tokens> run();

 private:
  std::size_t free_rows() const;
  void admit();
  void choose();
  void retire();
  void forward();
  void drop_padding();
  at::Tensor chosen() const;
  at::Tensor without_ends(const at::Tensor& scores) const;
  std::int64_t length_of(std::size_t prompt) const;  ///< with its new tokens
  std::int64_t length_of_longest() const;            ///< in the batch
  bool has_padding() const;
  bool has_ended(std::size_t prompt) const;
  at::TensorOptions ids_options() const;

  PretrainedModel& model_;
  const std::vector<Tokens>& prompts_;
  const GenerateOptions& options_;
  c10::Device device_;
  std::set<std::int64_t> ends_;
  std::vector<std::uint64_t> numbers_;  ///< of the prompts
  std::vector<Tokens> new_;             ///< of each prompt
  std::size_t next_prompt_ = 0;         ///< the first that has not been admitted

  // The batch: a row for each text that has not ended, all ending at the same column.
  std::vector<std::size_t> rows_;  ///< the prompt of each row
  at::Tensor texts_;               ///< [rows, time]: the prompts and the new tokens
  at::Tensor mask_;                ///< [rows, time]: 0 for padding
  at::Tensor positions_;           ///< [rows, 1]: of the last token
  at::Tensor scores_;              ///< [rows, vocabulary]: of the next token
  KeyValueCache cache_;
};

}  // namespace hortator::models
