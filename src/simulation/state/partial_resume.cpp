#include "simulation/state/partial_resume.hpp"

#include <utility>

namespace hortator::simulation {

std::set<std::string> PartialResume::run(const std::function<void()>& load) {
  left_out_.clear();
  is_allowed_ = true;
  try {
    load();
  } catch (...) {
    is_allowed_ = false;
    throw;
  }
  is_allowed_ = false;
  return std::exchange(left_out_, {});
}

accelerator::CheckpointPart PartialResume::optional(std::string name, accelerator::CheckpointPart part) {
  auto result = part;
  result.misfits = [this, misfits = part.misfits](const checkpoint::Reader& reader) {
    return is_allowed_ ? std::vector<std::string>() : misfits(reader);
  };
  result.load = [this, name = std::move(name), part = std::move(part)](const checkpoint::Reader& reader) {
    const bool is_missing = is_allowed_ && !part.misfits(reader).empty();
    if (is_missing) return void(left_out_.insert(name));
    left_out_.erase(name);  // of a damaged checkpoint, which was tried before
    part.load(reader);
  };
  return result;
}

}  // namespace hortator::simulation
