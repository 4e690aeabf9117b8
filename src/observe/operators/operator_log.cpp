#include "observe/operators/operator_log.hpp"

#include <utility>

#include "machine/races/storage_memory.hpp"

namespace hortator::observe {
namespace {

// "layers.0.query.weight" is of "layers.0.query".
std::string module_of(const std::string& parameter) {
  const auto dot = parameter.rfind('.');
  return dot == std::string::npos ? parameter : parameter.substr(0, dot);
}

}  // namespace

OperatorLog::OperatorLog(const std::vector<std::pair<std::string, at::Tensor>>& parameters) {
  for (const auto& [name, tensor] : parameters) {
    const auto begin = tensor.storage_offset();
    parameters_[machine::storage_of(tensor)].push_back(
        {.begin = begin, .end = begin + tensor.numel(), .path = module_of(name)});
  }
}

std::string OperatorLog::path_of(const at::Tensor& tensor) const {
  const auto found = parameters_.find(machine::storage_of(tensor));
  if (found == parameters_.end()) return "";
  const auto offset = tensor.storage_offset();
  for (const auto& elements : found->second) {
    if (elements.begin <= offset && offset < elements.end) return elements.path;
  }
  return "";
}

void OperatorLog::add(OperatorRecord record, std::int64_t forward, std::int64_t own) {
  const std::scoped_lock lock(mutex_);
  if (is_update_) {
    near_ = "update";
    record.path.clear();
  } else if (!record.path.empty()) {
    near_ = record.path;
  } else if (const auto found = near_of_.find(forward); record.is_backward && found != near_of_.end()) {
    near_ = found->second;
  }
  record.near = near_;
  record.part = part_;
  if (own >= 0 && !record.is_backward) near_of_[own] = near_;
  records_.push_back(std::move(record));
}

void OperatorLog::add_noted(OperatorRecord record) {
  const std::scoped_lock lock(mutex_);
  records_.push_back(std::move(record));
}

std::size_t OperatorLog::size() const {
  const std::scoped_lock lock(mutex_);
  return records_.size();
}

void OperatorLog::begin_part(int number) {
  const std::scoped_lock lock(mutex_);
  part_ = number;
  near_.clear();
}

void OperatorLog::begin_update() {
  const std::scoped_lock lock(mutex_);
  is_update_ = true;
  part_ = -1;
}

std::vector<OperatorRecord> OperatorLog::take() {
  const std::scoped_lock lock(mutex_);
  return std::exchange(records_, {});
}

}  // namespace hortator::observe
