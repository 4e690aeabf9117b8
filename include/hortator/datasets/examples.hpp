#pragma once

#include <ATen/core/Tensor.h>
#include <torch/data/example.h>

#include <cstdint>
#include <hortator/export.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace hortator {

namespace detail {

HORTATOR_API void require_column(const std::vector<std::string>& columns, const std::string& name);
HORTATOR_API void require_same_size(std::int64_t data, std::int64_t target);

[[noreturn]] HORTATOR_API void throw_no_tensor(const std::string& column);

template <typename Row>
const at::Tensor& column_of(const Row& row, const std::string& name) {
  if constexpr (requires { row.tensors; }) {
    const auto found = row.tensors.find(name);
    if (found == row.tensors.end()) throw_no_tensor(name);
    return found->second;
  } else {
    return row.at(name);
  }
}

/// Two columns of a data set, as data and target.
template <typename Dataset>
class ColumnExamples {
 public:
  ColumnExamples(Dataset dataset, std::string data, std::string target)
      : dataset_(std::move(dataset)), data_(std::move(data)), target_(std::move(target)) {
    require_column(dataset_.columns(), data_);
    require_column(dataset_.columns(), target_);
  }

  std::int64_t size() const { return dataset_.size(); }
  torch::data::Example<> get(std::int64_t sample) const { return example(dataset_.get(sample)); }
  torch::data::Example<> get_batch(std::span<const std::int64_t> samples) const {
    return example(dataset_.get_batch(samples));
  }

 private:
  template <typename Row>
  torch::data::Example<> example(const Row& row) const {
    return {column_of(row, data_), column_of(row, target_)};
  }

  Dataset dataset_;
  std::string data_;
  std::string target_;
};

/// A data set of samples and a data set of their targets, combined.
template <typename Data, typename Target>
class PairedExamples {
 public:
  PairedExamples(Data data, Target target) : data_(std::move(data)), target_(std::move(target)) {
    require_same_size(data_.size(), target_.size());
  }

  std::int64_t size() const { return data_.size(); }
  torch::data::Example<> get(std::int64_t sample) const { return {data_.get(sample), target_.get(sample)}; }
  torch::data::Example<> get_batch(std::span<const std::int64_t> samples) const {
    return {data_.get_batch(samples), target_.get_batch(samples)};
  }

 private:
  Data data_;
  Target target_;
};

}  // namespace detail

/// Uses two columns of a data set as `data` and `target`:
/// data_loader(examples(Hdf5Rows("train.h5", {"x", "y"}), "x", "y"), ...)
template <typename Dataset>
auto examples(Dataset dataset, std::string data, std::string target) {
  return detail::ColumnExamples<Dataset>(std::move(dataset), std::move(data), std::move(target));
}

/// Combines two data sets of tensors of the same size: examples(ArrayRows("x.npy"), ArrayRows("y.npy"))
template <typename Data, typename Target>
auto examples(Data data, Target target) {
  return detail::PairedExamples<Data, Target>(std::move(data), std::move(target));
}

}  // namespace hortator
