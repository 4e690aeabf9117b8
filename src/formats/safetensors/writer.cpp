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
#include "formats/tensor/tensor_slab.hpp"
#include "mpi/agree.hpp"

namespace hortator::formats {
namespace {

using nlohmann::json;

constexpr std::string_view metadata_name = "__metadata__";
constexpr std::size_t header_grain = 8;                      // it is filled up with spaces to a multiple
constexpr std::int64_t line_grain = 4096;                    // of bytes, between what two ranks write
constexpr std::int64_t piece_bytes = std::int64_t{4} << 20;  // of one call of the system

std::string quoted(const std::string& words) {
  try {
    return json(words).dump();
  } catch (const json::exception&) {
    throw UsageError({.what = text::concat("the name ", text::quote(words), " cannot be written: it is no UTF-8"),
                      .why = "the header of safetensors is a text"});
  }
}

const SafetensorsType& type_of(const std::string& name, const TensorSpec& spec) {
  if (name == metadata_name) {
    throw UsageError({.what = text::concat("a tensor cannot be called ", text::quote(name)),
                      .why = "safetensors keeps its own facts under that name"});
  }
  const auto* type = safetensors_type(spec.type);
  if (type != nullptr && (type->bits >= 8 || !spec.shape.empty())) return *type;
  throw UsageError({.what = text::concat("the tensor ", text::quote(name), ", ", to_string(spec),
                                         ", cannot be written: safetensors has no such elements"),
                    .hint = "convert it, or leave it out"});
}

struct Described {
  SafetensorsPlan::Place place;
  const SafetensorsType* type;
};

std::vector<Described> in_order(const std::map<std::string, TensorSpec>& tensors) {
  std::vector<Described> all;
  for (const auto& [name, spec] : tensors) {
    const auto& type = type_of(name, spec);  // apart: GCC 12 frees twice what stands before an initialiser that throws
    all.push_back({.place = {.name = name, .spec = spec}, .type = &type});
  }
  std::ranges::stable_sort(all, [](const Described& a, const Described& b) { return a.type > b.type; });
  return all;
}

std::string entry_of(const Described& tensor, std::int64_t begin) {
  const auto& [name, spec, offset] = tensor.place;
  auto shape = spec.shape;
  if (tensor.type->bits < 8) shape.back() *= 2;  // an element of the tensor is two of the file's
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

// --- writing: the tensors' bytes of all files, one file after the other, are a line that is dealt to the ranks
// ----------

std::int64_t data_bytes(const SafetensorsPlan& plan) {
  return plan.bytes - static_cast<std::int64_t>(plan.beginning.size());
}

/// Where each file's data begins on the line: so that no element lies across two multiples of the line's grain.
std::vector<std::int64_t> line_of(const std::vector<SafetensorsOutput>& files) {
  constexpr std::int64_t widest_element = 16;
  std::vector<std::int64_t> begins = {0};
  for (const auto& file : files)
    begins.push_back((begins.back() + data_bytes(file.plan) + widest_element - 1) / widest_element * widest_element);
  return begins;
}

at::Tensor asked_for(const TensorSource& source, const SafetensorsPlan::Place& place) {
  auto tensor = source(place.name);
  if (tensor.defined() && spec_of(tensor) == place.spec) return tensor;
  throw Error({.what = text::concat("the tensor ", text::quote(place.name), " was ", to_string(place.spec),
                                    " when it was asked for and is ",
                                    tensor.defined() ? to_string(spec_of(tensor)) : "undefined", " now"),
               .why = "its place in the file was planned"});
}

/// Writes what of one file lies in `stretch`, counted in bytes from the beginning of its data.
class FilePart {
 public:
  FilePart(const SafetensorsOutput& output, const TensorSource& source, const PartSource& parts,
           const std::function<void(std::int64_t)>& advance)
      : output_(output),
        source_(source),
        parts_(parts),
        advance_(advance),
        file_(RawFile::open_for_writing(output.path, visible_within)),
        pieces_(file_) {}

  void write_beginning() {
    const auto& bytes = output_.plan.beginning;
    pieces_.put(0, reinterpret_cast<const std::byte*>(bytes.data()), bytes.size());
  }

  void write(core::Range stretch) {
    const auto data = static_cast<std::int64_t>(output_.plan.beginning.size());
    for (const auto& place : output_.plan.tensors) {
      const auto own = parts_ ? parts_(place.name) : std::nullopt;
      if (own) {
        write(place, *own);
        continue;
      }
      const auto begin = place.offset - data;
      const core::Range bytes = {std::max(stretch.begin - begin, std::int64_t{0}),
                                 std::min(stretch.end - begin, place.spec.bytes())};
      if (bytes.size() > 0) write(place, bytes);
    }
  }

  void finish() { pieces_.finish(); }
  void sync() {
    file_.sync();
    file_.close();
  }

 private:
  void write(const SafetensorsPlan::Place& place, core::Range bytes) {
    const auto tensor = asked_for(source_, place);
    const auto element = static_cast<std::int64_t>(tensor.element_size());
    put(tensor, {bytes.begin / element, bytes.end / element}, place.offset + bytes.begin);
  }

  // Between two parts of this rank's a few bytes of another rank's may lie, over which nothing may be written.
  void write(const SafetensorsPlan::Place& place, const TensorPart& own) {
    if (own.elements.size() == 0) return;
    const auto element = static_cast<std::int64_t>(own.values.element_size());
    pieces_.finish();
    put(own.values, {0, own.elements.size()}, place.offset + own.elements.begin * element);
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
  const PartSource& parts_;
  const std::function<void(std::int64_t)>& advance_;
  RawFile file_;
  PieceWriter pieces_;
};

void write_part(const mpi::Communicator& comm, const std::vector<SafetensorsOutput>& files, const TensorSource& source,
                const PartSource& parts, const std::function<void(std::int64_t)>& advance) {
  const auto begins = line_of(files);
  const auto stretch = core::aligned(begins.back(), comm.size(), comm.rank(), line_grain);
  std::vector<std::unique_ptr<FilePart>> open;
  for (std::size_t i = 0; i < files.size(); ++i) {
    const core::Range mine = {std::max(stretch.begin - begins[i], std::int64_t{0}),
                              std::min(stretch.end - begins[i], data_bytes(files[i].plan))};
    if (comm.rank() != 0 && mine.size() <= 0 && !parts) continue;
    auto& part = *open.emplace_back(std::make_unique<FilePart>(files[i], source, parts, advance));
    if (comm.rank() == 0) part.write_beginning();
    part.write(mine);
    part.finish();
  }
  for (const auto& part : open) part->sync();  // all files are on their way to the disk by now
}

}  // namespace

SafetensorsPlan plan_safetensors(const std::map<std::string, TensorSpec>& tensors,
                                 const std::map<std::string, std::string>& metadata) {
  std::vector<std::string> entries;
  std::vector<std::string> facts;
  for (const auto& [name, value] : metadata) facts.push_back(quoted(name) + ":" + quoted(value));
  if (!facts.empty()) entries.push_back(text::concat('"', metadata_name, R"(":{)", text::join(facts, ","), '}'));
  auto described = in_order(tensors);
  std::int64_t end = 0;
  for (const auto& tensor : described) {
    entries.push_back(entry_of(tensor, end));
    end += tensor.place.spec.bytes();
  }
  SafetensorsPlan plan = {.beginning = with_length("{" + text::join(entries, ",") + "}")};
  plan.bytes = static_cast<std::int64_t>(plan.beginning.size());
  for (auto& tensor : described) {
    tensor.place.offset = plan.bytes;
    plan.bytes += tensor.place.spec.bytes();
    plan.tensors.push_back(std::move(tensor.place));
  }
  return plan;
}

void write_safetensors(const mpi::Communicator& comm, const std::vector<SafetensorsOutput>& files,
                       const TensorSource& source, const std::function<void(std::int64_t)>& advance,
                       const PartSource& parts) {
  mpi::all_or_none(comm, [&] {
    if (comm.rank() != 0) return;
    for (const auto& file : files) RawFile::create(file.path, visible_within).close();
  });
  mpi::all_or_none(comm, [&] { write_part(comm, files, source, parts, advance); });
}

}  // namespace hortator::formats
