#include "checkpoint/read/block_reader.hpp"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstring>

#include "checkpoint/format.hpp"
#include "core/checksum/crc.hpp"
#include "core/text/text.hpp"
#include "formats/file/file_error.hpp"
#include "formats/tensor/tensor_ranges.hpp"

namespace hortator::checkpoint {
namespace {

constexpr std::int64_t checked_bytes = std::int64_t{1} << 19;  // stays in the cache between reading and the checksum

std::int64_t element_bytes(const Manifest::Dataset& dataset) {
  return static_cast<std::int64_t>(c10::elementSize(dataset.spec.type));
}

}  // namespace

BlockReader::BlockReader(std::filesystem::path folder, const Manifest& manifest, bool verify,
                         std::chrono::milliseconds patience)
    : folder_(std::move(folder)),
      manifest_(manifest),
      verify_(verify),
      patience_(patience),
      files_(manifest.files.size()) {}

const formats::RawFile& BlockReader::file(std::size_t index) {
  auto& file = files_[index];
  if (file) return *file;
  const auto& facts = manifest_.files[index];
  const auto path = folder_ / facts.name;
  auto opened = formats::RawFile::open_for_reading(path, patience_);
  const auto bytes = static_cast<std::int64_t>(opened.bytes());
  if (bytes != facts.bytes) {
    throw formats::FileError({.what = text::concat("The file ", path.string(), " is damaged: it has ", bytes,
                                                   " bytes, expected ", facts.bytes)});
  }
  opened.expect_front_to_back();
  return file.emplace(std::move(opened));
}

std::uint32_t BlockReader::read_piece(std::size_t index, core::Range bytes, std::byte* to, std::uint32_t checksum) {
  const auto& from = file(index);
  for (auto begin = bytes.begin; begin < bytes.end; begin += checked_bytes) {
    const auto count = static_cast<std::size_t>(std::min(checked_bytes, bytes.end - begin));
    from.read_at(begin, to, count);
    if (verify_) checksum = core::crc32c(to, count, checksum);
    to += count;
  }
  return checksum;
}

std::int64_t BlockReader::read_block(const std::string& name, const Manifest::Dataset& dataset, std::int64_t block,
                                     std::byte* to) {
  const auto element = element_bytes(dataset);
  const auto begin = block * (block_bytes / element);
  const auto end = std::min(begin + block_bytes / element, dataset.spec.elements());
  std::uint32_t checksum = 0;
  std::size_t last_file = 0;
  for (const auto& piece : dataset.pieces) {
    const core::Range elements = {std::max(begin, piece.elements.begin), std::min(end, piece.elements.end)};
    if (elements.size() <= 0) continue;
    const auto offset = piece.offset + (elements.begin - piece.elements.begin) * element;
    checksum = read_piece(piece.file, {offset, offset + elements.size() * element},
                          to + (elements.begin - begin) * element, checksum);
    last_file = piece.file;
  }
  if (verify_ && checksum != dataset.blocks[static_cast<std::size_t>(block)]) {
    throw formats::FileError(
        {.what = text::concat("The file ", (folder_ / manifest_.files[last_file].name).string(),
                              " is damaged: the checksum of the dataset ", text::quote(name),
                              " does not match in its bytes ", begin * element, " to ", end * element - 1),
         .why = "they are not the bytes that were saved"});
  }
  return (end - begin) * element;
}

void BlockReader::read(const std::string& name, const at::Tensor& tensor) {
  const auto& dataset = manifest_.datasets.at(name);
  const auto blocks = static_cast<std::int64_t>(dataset.blocks.size());
  const auto target = tensor.detach();
  if (formats::lies_flat(target)) {
    auto* to = static_cast<std::byte*>(target.mutable_data_ptr());
    for (std::int64_t block = 0; block < blocks; ++block) to += read_block(name, dataset, block, to);
    return;
  }
  const auto element = element_bytes(dataset);
  const auto buffer = at::empty({std::min(block_bytes / element, dataset.spec.elements())},
                                target.options().device(at::kCPU).memory_format(at::MemoryFormat::Contiguous));
  for (std::int64_t block = 0; block < blocks; ++block) {
    const auto bytes = read_block(name, dataset, block, static_cast<std::byte*>(buffer.mutable_data_ptr()));
    formats::scatter(buffer.narrow(0, 0, bytes / element), target, block * (block_bytes / element));
  }
}

// A block is always read whole, for its checksum; into a buffer if only a part of it is wanted.
void BlockReader::read(const std::string& name, core::Range elements, std::byte* to) {
  const auto& dataset = manifest_.datasets.at(name);
  const auto element = element_bytes(dataset);
  const auto in_block = block_bytes / element;
  std::vector<std::byte> buffer;
  for (auto block = elements.begin / in_block; block * in_block < elements.end; ++block) {
    const core::Range whole = {block * in_block, std::min((block + 1) * in_block, dataset.spec.elements())};
    const core::Range wanted = {std::max(whole.begin, elements.begin), std::min(whole.end, elements.end)};
    const auto bytes = static_cast<std::size_t>(wanted.size() * element);
    if (wanted == whole) {
      read_block(name, dataset, block, to);
    } else {
      buffer.resize(static_cast<std::size_t>(whole.size() * element));
      read_block(name, dataset, block, buffer.data());
      std::memcpy(to, buffer.data() + (wanted.begin - whole.begin) * element, bytes);
    }
    to += bytes;
  }
}

void BlockReader::check(const std::string& name, const std::function<void(std::int64_t)>& advance) {
  const auto& dataset = manifest_.datasets.at(name);
  std::vector<std::byte> buffer(static_cast<std::size_t>(std::min(block_bytes, dataset.spec.bytes())));
  for (std::int64_t block = 0; block < static_cast<std::int64_t>(dataset.blocks.size()); ++block)
    advance(read_block(name, dataset, block, buffer.data()));
}

}  // namespace hortator::checkpoint
