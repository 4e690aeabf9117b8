#include "formats/safetensors/writer.hpp"

#include <algorithm>
#include <hortator/error.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "core/range.hpp"
#include "core/text/text.hpp"
#include "formats/file/piece_writer.hpp"
#include "formats/file/raw_file.hpp"
#include "formats/safetensors/header.hpp"
#include "formats/tensor/tensor_ranges.hpp"
#include "mpi/agree.hpp"

namespace hortator::formats {
namespace {

using nlohmann::json;

constexpr std::size_t header_grain = 8;                      // the header is padded with spaces to a multiple
constexpr std::int64_t range_grain = 4096;                   // of bytes: the ranges of two ranks meet at a multiple
constexpr std::int64_t piece_bytes = std::int64_t{4} << 20;  // written by one system call

std::string quoted(const std::string& text) {
  try {
    return json(text).dump();
  } catch (const json::exception&) {
    throw UsageError({.what = text::concat("The name ", text::quote(text), " cannot be written: it is not UTF-8"),
                      .why = "a safetensors header is UTF-8 text"});
  }
}

const SafetensorsType& type_of(const std::string& name, const TensorSpec& spec) {
  if (name == safetensors_metadata_name) {
    throw UsageError({.what = text::concat("A tensor cannot be called ", text::quote(name)),
                      .why = "safetensors stores its metadata under that name"});
  }
  const auto* type = safetensors_type(spec.type);
  if (type != nullptr && (type->bits >= 8 || !spec.shape.empty())) return *type;
  throw UsageError({.what = text::concat("The tensor ", text::quote(name), ", ", to_string(spec),
                                         ", cannot be written: safetensors has no such type"),
                    .hint = "convert it, or leave it out"});
}

struct TypedTensor {
  SafetensorsPlan::PlannedTensor planned;
  const SafetensorsType* type;
};

std::vector<TypedTensor> in_order(const std::map<std::string, TensorSpec>& tensors) {
  std::vector<TypedTensor> all;
  for (const auto& [name, spec] : tensors) {
    const auto& type = type_of(name, spec);  // separate: GCC 12 destroys members twice when a later initialiser throws
    all.push_back({.planned = {.name = name, .spec = spec}, .type = &type});
  }
  std::ranges::stable_sort(all, [](const TypedTensor& a, const TypedTensor& b) { return a.type > b.type; });
  return all;
}

std::string entry_of(const TypedTensor& tensor, std::int64_t begin) {
  const auto& [name, spec, offset] = tensor.planned;
  auto shape = spec.shape;
  if (tensor.type->bits < 8) shape.back() *= 2;  // an element of the tensor holds two of the file's
  return text::concat(quoted(name), R"(:{"dtype":")", tensor.type->name, R"(","shape":[)", text::join(shape, ","),
                      R"(],"data_offsets":[)", begin, ',', begin + spec.bytes(), "]}");
}

std::string with_length(std::string header) {
  header.append((header_grain - header.size() % header_grain) % header_grain, ' ');
  std::string bytes;
  for (std::size_t i = 0; i < safetensors_length_bytes; ++i)
    bytes += static_cast<char>(header.size() >> (8 * i) & 0xff);
  return bytes + header;
}

// Writing: the data of all files, one file after the other, form one sequence of bytes, which is distributed over the
// ranks.

std::int64_t data_bytes(const SafetensorsPlan& plan) {
  return plan.bytes - static_cast<std::int64_t>(plan.beginning.size());
}

/// Where each file's data begins in the sequence: aligned so that no element crosses a multiple of range_grain.
std::vector<std::int64_t> data_begins(const std::vector<SafetensorsOutput>& files) {
  constexpr std::int64_t widest_element = 16;
  std::vector<std::int64_t> begins = {0};
  for (const auto& file : files)
    begins.push_back((begins.back() + data_bytes(file.plan) + widest_element - 1) / widest_element * widest_element);
  return begins;
}

at::Tensor planned_tensor(const TensorSource& source, const SafetensorsPlan::PlannedTensor& planned) {
  auto tensor = source(planned.name);
  if (tensor.defined() && spec_of(tensor) == planned.spec) return tensor;
  throw Error({.what = text::concat("The tensor ", text::quote(planned.name), " was ", to_string(planned.spec),
                                    " when the file was planned, and is ",
                                    tensor.defined() ? to_string(spec_of(tensor)) : "undefined", " now"),
               .why = "its bytes would not fit their position in the file"});
}

/// Writes this rank's part of one file.
class SafetensorsFileWriter {
 public:
  SafetensorsFileWriter(const SafetensorsOutput& output, const TensorSource& source, const SliceSource& slices,
                        const std::function<void(std::int64_t)>& advance)
      : output_(output),
        source_(source),
        slices_(slices),
        advance_(advance),
        file_(RawFile::open_for_writing(output.path, visible_within())),
        pieces_(file_) {}

  void write_beginning() {
    const auto& bytes = output_.plan.beginning;
    pieces_.put(0, reinterpret_cast<const std::byte*>(bytes.data()), bytes.size());
  }

  /// `range`: in bytes, from the beginning of the file's data.
  void write(core::Range range) {
    const auto data = static_cast<std::int64_t>(output_.plan.beginning.size());
    for (const auto& planned : output_.plan.tensors) {
      const auto own = slices_ ? slices_(planned.name) : std::nullopt;
      if (own) {
        write(planned, *own);
        continue;
      }
      const auto begin = planned.offset - data;
      const core::Range bytes = {std::max(range.begin - begin, std::int64_t{0}),
                                 std::min(range.end - begin, planned.spec.bytes())};
      if (bytes.size() > 0) write(planned, bytes);
    }
  }

  void finish() { pieces_.finish(); }
  void sync() {
    file_.sync();
    file_.close();
  }

 private:
  void write(const SafetensorsPlan::PlannedTensor& planned, core::Range bytes) {
    const auto tensor = planned_tensor(source_, planned);
    const auto element = static_cast<std::int64_t>(tensor.element_size());
    put(tensor, {bytes.begin / element, bytes.end / element}, planned.offset + bytes.begin);
  }

  // Bytes of another rank may lie in a small gap between two slices of this rank: PieceWriter must not fill it.
  void write(const SafetensorsPlan::PlannedTensor& planned, const TensorSlice& own) {
    if (own.elements.size() == 0) return;
    const auto element = static_cast<std::int64_t>(own.values.element_size());
    pieces_.finish();
    put(own.values, {0, own.elements.size()}, planned.offset + own.elements.begin * element);
    pieces_.finish();
  }

  void put(const at::Tensor& tensor, core::Range elements, std::int64_t offset) {
    for_each_piece(tensor, elements, piece_bytes / static_cast<std::int64_t>(tensor.element_size()),
                   [&](const at::Tensor& piece) {
                     const auto host = ready_to_store(piece);
                     pieces_.put(offset, static_cast<const std::byte*>(host.const_data_ptr()), host.nbytes());
                     offset += static_cast<std::int64_t>(host.nbytes());
                     if (advance_) advance_(static_cast<std::int64_t>(host.nbytes()));
                   });
  }

  const SafetensorsOutput& output_;
  const TensorSource& source_;
  const SliceSource& slices_;
  const std::function<void(std::int64_t)>& advance_;
  RawFile file_;
  PieceWriter pieces_;
};

void write_range(const mpi::Communicator& comm, const std::vector<SafetensorsOutput>& files, const TensorSource& source,
                 const SliceSource& slices, const std::function<void(std::int64_t)>& advance) {
  const auto begins = data_begins(files);
  const auto range = core::aligned(begins.back(), comm.size(), comm.rank(), range_grain);
  std::vector<std::unique_ptr<SafetensorsFileWriter>> open;
  for (std::size_t i = 0; i < files.size(); ++i) {
    const core::Range mine = {std::max(range.begin - begins[i], std::int64_t{0}),
                              std::min(range.end - begins[i], data_bytes(files[i].plan))};
    if (comm.rank() != 0 && mine.size() <= 0 && !slices) continue;
    auto& part = *open.emplace_back(std::make_unique<SafetensorsFileWriter>(files[i], source, slices, advance));
    if (comm.rank() == 0) part.write_beginning();
    part.write(mine);
    part.finish();
  }
  for (const auto& part : open) part->sync();  // by now the system writes all files to the disk
}

}  // namespace

SafetensorsPlan plan_safetensors(const std::map<std::string, TensorSpec>& tensors,
                                 const std::map<std::string, std::string>& metadata) {
  std::vector<std::string> entries;
  std::vector<std::string> metadata_entries;
  for (const auto& [name, value] : metadata) metadata_entries.push_back(quoted(name) + ":" + quoted(value));
  if (!metadata_entries.empty())
    entries.push_back(text::concat('"', safetensors_metadata_name, R"(":{)", text::join(metadata_entries, ","), '}'));
  auto described = in_order(tensors);
  std::int64_t end = 0;
  for (const auto& tensor : described) {
    entries.push_back(entry_of(tensor, end));
    end += tensor.planned.spec.bytes();
  }
  SafetensorsPlan plan = {.beginning = with_length("{" + text::join(entries, ",") + "}")};
  plan.bytes = static_cast<std::int64_t>(plan.beginning.size());
  for (auto& tensor : described) {
    tensor.planned.offset = plan.bytes;
    plan.bytes += tensor.planned.spec.bytes();
    plan.tensors.push_back(std::move(tensor.planned));
  }
  return plan;
}

void write_safetensors(const mpi::Communicator& comm, const std::vector<SafetensorsOutput>& files,
                       const TensorSource& source, const std::function<void(std::int64_t)>& advance,
                       const SliceSource& slices) {
  mpi::all_or_none(comm, [&] {
    if (comm.rank() != 0) return;
    for (const auto& file : files) RawFile::create(file.path, visible_within()).close();
  });
  mpi::all_or_none(comm, [&] { write_range(comm, files, source, slices, advance); });
}

}  // namespace hortator::formats
