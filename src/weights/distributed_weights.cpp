#include "weights/distributed_weights.hpp"

#include <algorithm>
#include <cstring>
#include <ranges>
#include <utility>

#include "core/text/text.hpp"
#include "formats/file/file_error.hpp"
#include "formats/torch/pickle/archive.hpp"

namespace hortator::weights {
namespace {

namespace fs = std::filesystem;
using formats::DistributedPart;
using formats::DistributedTensor;
using formats::FileError;

constexpr std::uint64_t max_metadata_bytes = std::uint64_t{1} << 30;
constexpr auto copy_again = "it is truncated, damaged, or of another save: copy the folder again";

formats::DistributedMetadata read_metadata(const fs::path& path) {
  const formats::FixedFile file(path);
  try {
    if (file.bytes() > max_metadata_bytes)
      throw formats::PickleFault(text::concat("its metadata has ", file.bytes(), " bytes"));
    std::string pickle(file.bytes(), '\0');
    file.read_at(0, pickle.data(), pickle.size());
    return formats::parse_distributed_metadata(pickle);
  } catch (const formats::PickleFault& fault) {
    throw FileError(
        {.what = text::concat(path, " is not of torch.distributed.checkpoint: ", fault.what()), .hint = copy_again});
  }
}

[[noreturn]] void refuse_place(const formats::FixedFile& file, const formats::DistributedPlace& place,
                               std::string_view why) {
  throw FileError({.what = text::concat("The value at byte ", place.begin, " of ", file.path(), " is not valid: ", why),
                   .hint = copy_again});
}

formats::PickleArchive open_archive(const formats::FixedFile& file, const formats::DistributedPlace& place,
                                    formats::ForeignObjects foreign = formats::ForeignObjects::refused) {
  if (place.begin > file.bytes() || place.bytes > file.bytes() - place.begin)
    refuse_place(file, place, "it is beyond the file's end");
  const auto read_at = [&](std::uint64_t offset, void* data, std::size_t bytes) {
    file.read_at(place.begin + offset, data, bytes);
  };
  try {
    return formats::PickleArchive({.bytes = place.bytes, .read_at = read_at}, foreign);
  } catch (const formats::ZipFault& fault) {
    refuse_place(file, place, fault.what());
  } catch (const formats::PickleFault& fault) {
    refuse_place(file, place, fault.what());
  }
}

/// How a part lies in its tensor: as runs of elements that are neighbours in both.
struct Runs {
  std::int64_t length = 1;  ///< elements
  std::size_t outer = 0;    ///< number of leading dimensions that are counted through

  Runs(const DistributedTensor& tensor, const DistributedPart& part) : outer(part.sizes.size()) {
    while (outer > 0) {
      --outer;
      length *= part.sizes[outer];
      if (part.sizes[outer] != tensor.spec.shape[outer]) return;
    }
  }

  /// The place in the tensor of the run with this number.
  std::int64_t begin(std::int64_t number, const DistributedTensor& tensor, const DistributedPart& part) const {
    std::vector<std::int64_t> index = part.offsets;
    for (auto i = outer; i-- > 0; number /= part.sizes[i]) index[i] += number % part.sizes[i];
    std::int64_t place = 0;
    for (std::size_t i = 0; i < index.size(); ++i) place = place * tensor.spec.shape[i] + index[i];
    return place;
  }
};

}  // namespace

DistributedWeights::DistributedWeights(fs::path folder)
    : folder_(std::move(folder)), metadata_(read_metadata(folder_ / metadata_file)) {
  const auto open = [&](const formats::DistributedPlace& place) {
    if (!file_numbers_.contains(place.file)) file_numbers_[place.file] = files_.add(folder_ / place.file);
  };
  for (const auto& tensor : metadata_.tensors) {
    const auto name = text::join(tensor.path, ".");
    const bool is_new =
        entries_
            .try_emplace(
                name, Entry{.tensor = &tensor, .places = std::vector<std::optional<PartPosition>>(tensor.parts.size())})
            .second;
    if (!is_new) throw FileError({.what = text::concat(folder_, " has two tensors ", text::quote(name))});
    names_.push_back(name);
    for (const auto& part : tensor.parts) {
      open(part.place);
      if (static_cast<std::uint64_t>(part.elements() * tensor.spec.element_bytes()) > part.place.bytes)
        refuse_place(*file_of(part.place), part.place,
                     text::concat("it is too small for its part of ", text::quote(name)));
    }
  }
  for (const auto& object : metadata_.objects) open(object.place);
}

const DistributedWeights::Entry& DistributedWeights::entry(const std::string& name) const {
  const auto found = entries_.find(name);
  if (found != entries_.end()) return found->second;
  throw UsageError(
      {.what = text::concat(folder_, " has no tensor ", text::quote(name)), .hint = text::suggestion(name, names_)});
}

void DistributedWeights::require_unchanged() const { files_.require_unchanged(); }

DistributedWeights::PartPosition DistributedWeights::find_place(const DistributedTensor& tensor,
                                                                const DistributedPart& part) const {
  const auto opened = file_of(part.place);
  const auto& file = *opened;
  const auto archive = open_archive(file, part.place);
  const auto* stored = std::get_if<formats::PickledTensor>(&archive.value().content);
  if (stored == nullptr) refuse_place(file, part.place, text::concat("it is ", archive.value().described()));
  const formats::TensorSpec expected{.type = tensor.spec.type, .shape = part.sizes};
  if (stored->spec != expected) {
    refuse_place(
        file, part.place,
        text::concat("it is ", formats::to_string(stored->spec), ", the metadata say ", formats::to_string(expected)));
  }
  if (!stored->is_row_major()) refuse_place(file, part.place, "its elements are not in row-major order");
  const auto first = static_cast<std::uint64_t>(stored->first * stored->spec.element_bytes());
  return {.file = file_numbers_.at(part.place.file),
          .offset = part.place.begin + archive.storage(*stored).offset + first};
}

formats::PickleValue DistributedWeights::object(const formats::DistributedObject& object) const {
  return open_archive(*file_of(object.place), object.place, formats::ForeignObjects::kept).value();
}

const DistributedWeights::PartPosition& DistributedWeights::place(const Entry& entry, std::size_t part) const {
  auto& found = entry.places[part];
  if (!found) found = find_place(*entry.tensor, entry.tensor->parts[part]);
  return *found;
}

void DistributedWeights::read(const std::string& name, core::Range elements, std::byte* to) const {
  const auto& found = entry(name);
  for (std::size_t part = 0; part < found.tensor->parts.size(); ++part) read_part(found, part, elements, to);
}

/// Copies what the part has of the range. Its runs are in the order of the tensor, so that this is one piece of its
/// file.
void DistributedWeights::read_part(const Entry& entry, std::size_t index, core::Range elements, std::byte* to) const {
  const auto& tensor = *entry.tensor;
  const auto& part = tensor.parts[index];
  const Runs runs(tensor, part);
  const auto count = part.elements() / runs.length;
  const auto begin_of = [&](std::int64_t run) { return runs.begin(run, tensor, part); };
  const auto first_run_not = [&](auto condition) {
    const auto numbers = std::views::iota(std::int64_t{0}, count);
    return static_cast<std::int64_t>(std::ranges::partition_point(numbers, condition) - numbers.begin());
  };
  const auto first = first_run_not([&](auto run) { return begin_of(run) + runs.length <= elements.begin; });
  const auto last = first_run_not([&](auto run) { return begin_of(run) < elements.end; });
  if (first >= last) return;
  const auto element = tensor.spec.element_bytes();
  const auto skipped = std::max<std::int64_t>(elements.begin - begin_of(first), 0);
  const auto end = (last - 1) * runs.length + std::min(runs.length, elements.end - begin_of(last - 1));
  const core::Range local{first * runs.length + skipped, end};
  const auto& [number, offset] = place(entry, index);
  const auto file = files_.get(number);
  const auto target = [&](std::int64_t at) { return to + (at - elements.begin) * element; };
  if (last - first == 1) {
    file->read_at(offset + static_cast<std::uint64_t>(local.begin * element), target(begin_of(first) + skipped),
                  static_cast<std::size_t>(local.size() * element));
    return;
  }
  std::vector<std::byte> stored(static_cast<std::size_t>(local.size() * element));
  file->read_at(offset + static_cast<std::uint64_t>(local.begin * element), stored.data(), stored.size());
  for (auto run = first; run < last; ++run) {
    const core::Range own{std::max(run * runs.length, local.begin), std::min((run + 1) * runs.length, local.end)};
    std::memcpy(target(begin_of(run) + own.begin - run * runs.length),
                stored.data() + (own.begin - local.begin) * element, static_cast<std::size_t>(own.size() * element));
  }
}

}  // namespace hortator::weights
