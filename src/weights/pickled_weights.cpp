#include "weights/pickled_weights.hpp"

#include <algorithm>
#include <cstring>

#include "core/text/text.hpp"
#include "formats/torch/pickle/file.hpp"

namespace hortator::weights {
namespace {

class PickledWeights : public WeightSource {
 public:
  explicit PickledWeights(const std::filesystem::path& path) : file_(path) {}

  const std::filesystem::path& path() const override { return file_.path(); }
  const std::vector<std::string>& names() const override { return file_.names(); }
  formats::TensorSpec spec(const std::string& name) const override { return file_.spec(name); }

  std::string identity(const std::string& name) const override {
    const auto& tensor = file_.tensor(name);
    return text::concat(tensor.storage, " from ", tensor.first, ", ", formats::to_string(tensor.spec));
  }
  at::Tensor tensor(const std::string& name) const override { return file_.view(name); }

  // Reads whole rows, whose positions the file knows whatever the strides.
  void read(const std::string& name, core::Range elements, std::byte* to) const override {
    if (elements.size() <= 0) return;
    const auto spec = file_.spec(name);
    const bool is_whole = elements.size() == spec.elements();
    const auto row = is_whole ? 1 : spec.elements() / spec.shape.front();
    const auto first = elements.begin / row;
    const auto count = (elements.end + row - 1) / row - first;
    const auto rows = (is_whole ? file_.get(name) : file_.get_rows(name, first, count)).contiguous();
    const auto element = static_cast<std::int64_t>(c10::elementSize(spec.type));
    const auto* from = static_cast<const std::byte*>(rows.const_data_ptr()) + (elements.begin - first * row) * element;
    std::memcpy(to, from, static_cast<std::size_t>(elements.size() * element));
  }

 private:
  formats::PickleFile file_;
};

}  // namespace

std::unique_ptr<WeightSource> open_pickled_weights(const std::filesystem::path& path) {
  return std::make_unique<PickledWeights>(path);
}

}  // namespace hortator::weights
