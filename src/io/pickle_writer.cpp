#include "io/pickle_writer.hpp"

#include "base/text.hpp"
#include "io/pickle_plan.hpp"
#include "io/raw_file.hpp"
#include "io/replacement.hpp"
#include "io/tensor_slab.hpp"
#include "io/zip_writer.hpp"

namespace hortator::io {
namespace {

constexpr auto folder = "archive/";
constexpr std::int64_t piece_bytes = std::int64_t{1} << 23;

void write_storage(ZipWriter& archive, const at::Tensor& storage, const std::function<void(std::int64_t)>& advance) {
  const auto most = piece_bytes / static_cast<std::int64_t>(storage.element_size());
  for_each_piece(storage, {0, storage.numel()}, most, [&](const at::Tensor& piece) {
    const auto flat = lies_flat(piece) ? piece : piece.to(at::kCPU).contiguous();
    archive.append(flat.const_data_ptr(), flat.nbytes());
    if (advance) advance(static_cast<std::int64_t>(flat.nbytes()));
  });
}

void write_archive(const RawFile& file, const PicklePlan& plan, const std::function<void(std::int64_t)>& advance) {
  ZipWriter archive(file);
  archive.add(text::concat(folder, "data.pkl"), pickle_of(plan));
  archive.add(text::concat(folder, "byteorder"), "little");
  for (std::size_t i = 0; i < plan.storages.size(); ++i) {
    archive.begin(text::concat(folder, "data/", i));
    write_storage(archive, plan.storages[i], advance);
    archive.end();
  }
  archive.add(text::concat(folder, "version"), "3\n");
  archive.finish();
}

}  // namespace

void write_pickle(const std::filesystem::path& path, const NamedTensors& tensors,
                  const std::function<void(std::int64_t)>& advance) {
  const auto plan = plan_pickle(tensors);
  const auto target = std::filesystem::absolute(path);
  const auto staged = target.string() + ".new-" + replacement_id();
  try {
    auto file = RawFile::create(staged);
    write_archive(file, plan, advance);
    file.sync();
    file.close();
    rename(staged, target);
    sync_folder(target.parent_path());
  } catch (...) {
    std::error_code ignored;
    std::filesystem::remove(staged, ignored);
    throw;
  }
}

}  // namespace hortator::io
