#include "accelerator/weights/checkpoint_weights.hpp"

#include <hortator/error.hpp>

#include "checkpoint/format.hpp"
#include "checkpoint/read/reader.hpp"
#include "core/text/text.hpp"

namespace hortator::accelerator {
namespace {

namespace fs = std::filesystem;

static_assert(weights::WeightSource::piece_bytes % checkpoint::block_bytes == 0, "pieces are whole blocks");

class CheckpointWeights : public weights::WeightSource {
 public:
  CheckpointWeights(const fs::path& folder, std::size_t model)
      : reader_(folder), prefix_(text::concat("models/", model, "/")) {
    for (const auto& [name, spec] : reader_.tensors()) {
      if (name.starts_with(prefix_)) names_.push_back(name.substr(prefix_.size()));
    }
    if (!names_.empty()) return;
    throw UsageError({.what = text::concat("The checkpoint ", reader_.folder(), " has no model number ", model),
                      .hint = "the first that was prepared has number 0"});
  }

  const fs::path& path() const override { return reader_.folder(); }
  const std::vector<std::string>& names() const override { return names_; }
  formats::TensorSpec spec(const std::string& name) const override { return reader_.tensors().at(prefix_ + name); }
  void read(const std::string& name, core::Range elements, std::byte* to) const override {
    reader_.read_elements(prefix_ + name, elements, to);
  }

 private:
  checkpoint::Reader reader_;
  std::string prefix_;
  std::vector<std::string> names_;
};

}  // namespace

std::unique_ptr<weights::WeightSource> open_weights_or_checkpoint(const fs::path& path, std::size_t model) {
  // A damaged checkpoint is opened too: its own error says more than that it holds no weights.
  const bool is_checkpoint = !fs::is_regular_file(path) && (checkpoint::exists(path) || checkpoint::has_any_file(path));
  if (is_checkpoint) return std::make_unique<CheckpointWeights>(path, model);
  return weights::open_weights(path);
}

}  // namespace hortator::accelerator
