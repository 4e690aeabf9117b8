#include "accelerator/weights/checkpoint_weights.hpp"

#include <hortator/error.hpp>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "checkpoint/format.hpp"
#include "checkpoint/read/reader.hpp"
#include "core/text/text.hpp"

namespace hortator::accelerator {
namespace {

namespace fs = std::filesystem;

static_assert(weights::WeightSource::piece_bytes % checkpoint::block_bytes == 0, "pieces are whole blocks");

// The part of a tensor's path between `prefix` and the next slash; empty for other paths.
std::string owner_in(const std::string& path, std::string_view prefix) {
  if (!path.starts_with(prefix)) return "";
  return path.substr(prefix.size(), path.find('/', prefix.size()) - prefix.size());
}

constexpr std::string_view model_prefix = "models/";
constexpr std::string_view average_prefix = "averages/";

class CheckpointWeights : public weights::WeightSource {
 public:
  CheckpointWeights(const fs::path& folder, std::size_t model, std::string averages)
      : reader_(folder), model_(std::to_string(model)), averages_(std::move(averages)) {
    const auto prefix = text::concat(model_prefix, model_, "/");
    for (const auto& [path, spec] : reader_.tensors()) {
      if (path.starts_with(prefix)) paths_[path.substr(prefix.size())] = path;
    }
    if (paths_.empty()) {
      throw UsageError({.what = text::concat("The checkpoint ", reader_.folder(), " has no model number ", model),
                        .hint = "the first that was prepared has number 0"});
    }
    if (!averages_.empty()) take_averages();
    for (const auto& [name, path] : paths_) names_.push_back(name);
  }

  const fs::path& path() const override { return reader_.folder(); }
  const std::vector<std::string>& names() const override { return names_; }
  formats::TensorSpec spec(const std::string& name) const override { return reader_.tensors().at(paths_.at(name)); }
  void read(const std::string& name, core::Range elements, std::byte* to) const override {
    reader_.read_elements(paths_.at(name), elements, to);
  }

  std::vector<std::string> others() const {
    std::vector<std::string> lines;
    for (const auto& name : owners(model_prefix)) {
      if (name != model_) lines.push_back(text::concat("model ", name, " (--model ", name, ")"));
    }
    for (const auto& name : owners(average_prefix)) {
      if (name != averages_) lines.push_back(text::concat("averages ", text::quote(name), " (--averages ", name, ")"));
    }
    return lines;
  }

 private:
  std::set<std::string> owners(std::string_view prefix) const {
    std::set<std::string> found;
    for (const auto& [path, spec] : reader_.tensors()) found.insert(owner_in(path, prefix));
    found.erase("");
    return found;
  }

  // Frozen parameters and buffers have no averages, and stay the model's.
  void take_averages() {
    bool has_any = false;
    for (auto& [name, path] : paths_) {
      const auto average = text::concat(average_prefix, averages_, "/", name);
      const auto found = reader_.tensors().find(average);
      if (found == reader_.tensors().end() || found->second.shape != reader_.tensors().at(path).shape) continue;
      path = average;
      has_any = true;
    }
    if (has_any) return;
    const auto names = owners(average_prefix);
    throw UsageError({.what = text::concat("The checkpoint ", reader_.folder(), " has no averages ",
                                           text::quote(averages_), " of model ", model_),
                      .hint = names.empty() ? "it holds no averages of an Ema"
                                            : "it holds: " + text::join(std::vector(names.begin(), names.end()))});
  }

  checkpoint::Reader reader_;
  std::string model_;
  std::string averages_;
  std::map<std::string, std::string> paths_;  ///< in the checkpoint, by the model's names
  std::vector<std::string> names_;
};

}  // namespace

std::unique_ptr<weights::WeightSource> open_weights_or_checkpoint(const fs::path& path, std::size_t model,
                                                                  const std::string& averages) {
  // A damaged checkpoint is opened too: its own error says more than that it holds no weights.
  const bool is_checkpoint = !fs::is_regular_file(path) && (checkpoint::exists(path) || checkpoint::has_any_file(path));
  if (is_checkpoint) return std::make_unique<CheckpointWeights>(path, model, averages);
  if (!averages.empty()) {
    throw UsageError(
        {.what = text::concat("--averages: ", text::quote(path.string()), " is not a checkpoint of save_state"),
         .why = "only such a checkpoint holds the averages of an Ema"});
  }
  return weights::open_weights(path);
}

std::vector<std::string> other_weights(const weights::WeightSource& source) {
  const auto* checkpoint = dynamic_cast<const CheckpointWeights*>(&source);
  return checkpoint != nullptr ? checkpoint->others() : std::vector<std::string>();
}

}  // namespace hortator::accelerator
