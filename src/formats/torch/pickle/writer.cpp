#include "formats/torch/pickle/writer.hpp"

#include "core/text/text.hpp"
#include "formats/file/raw_file.hpp"
#include "formats/file/replaced_file.hpp"
#include "formats/tensor/tensor_ranges.hpp"
#include "formats/torch/pickle/pickler.hpp"
#include "formats/torch/pickle/types.hpp"
#include "formats/torch/zip/writer.hpp"

namespace hortator::formats {
namespace {

/// A persistent object: ("storage", class, name, device, size).
void put_storage(Pickler& out, const PickledTensor& tensor, const PicklePlan::Storage& storage) {
  const auto named = storage_of_type(tensor.spec.type);
  out.code('(');
  out.text("storage");
  out.named(named.empty() ? untyped_storage : named);
  out.text(tensor.storage);
  out.text("cpu");
  out.integer(named.empty() ? storage.bytes() : storage.elements);
  out.code('t');
  out.code('Q');
}

constexpr auto archive_folder = "archive/";
constexpr std::int64_t storage_piece_bytes = std::int64_t{1} << 23;

void write_storage(ZipWriter& archive, const at::Tensor& storage, const WriteProgress& advance) {
  const auto max_elements = storage_piece_bytes / static_cast<std::int64_t>(storage.element_size());
  for_each_piece(storage, {0, storage.numel()}, max_elements, [&](const at::Tensor& piece) {
    const auto flat = ready_to_store(piece);
    archive.append(flat.const_data_ptr(), flat.nbytes());
    if (advance) advance(static_cast<std::int64_t>(flat.nbytes()));
  });
}

void write_archive(const RawFile& file, const std::string& pickle, std::size_t storages, const StorageSource& source,
                   const WriteProgress& advance) {
  ZipWriter archive(file);
  archive.add(text::concat(archive_folder, "data.pkl"), pickle);
  archive.add(text::concat(archive_folder, "byteorder"), "little");
  for (std::size_t i = 0; i < storages; ++i) {
    archive.begin(text::concat(archive_folder, "data/", i));
    write_storage(archive, source(i), advance);
    archive.end();
  }
  archive.add(text::concat(archive_folder, "version"), "3\n");
  archive.finish();
}

}  // namespace

void put_tensor(Pickler& out, const PickledTensor& tensor, const PicklePlan::Storage& storage) {
  const bool has_class = !storage_of_type(tensor.spec.type).empty();
  out.named(has_class ? "torch._utils._rebuild_tensor_v2" : "torch._utils._rebuild_tensor_v3");
  out.code('(');
  put_storage(out, tensor, storage);
  out.integer(tensor.first);
  out.integers(tensor.spec.shape);
  out.integers(tensor.strides);
  out.code('\x89');          // requires_grad
  out.empty_ordered_dict();  // hooks
  if (!has_class) out.named(text::concat("torch.", torch_name(tensor.spec.type)));
  out.code('t');
  out.code('R');
}

void write_pickle_archive(const std::filesystem::path& path, const std::string& pickle, std::size_t storages,
                          const StorageSource& source, const WriteProgress& advance) {
  replace_file(path, [&](const RawFile& file) { write_archive(file, pickle, storages, source, advance); });
}

std::string pickle_of(const PicklePlan& plan) {
  Pickler out;
  out.code('\x80');
  out.code('\2');
  out.empty_ordered_dict();
  out.code('(');
  for (const auto& [name, tensor] : plan.tensors) {
    out.text(name);
    put_tensor(out, tensor, plan.storages.at(std::stoul(tensor.storage)));
  }
  out.code('u');
  out.code('.');
  return out.bytes();
}

void write_pickle(const std::filesystem::path& path, const NamedTensors& tensors, const WriteProgress& advance) {
  const auto tied = plan_tied_pickle(tensors);
  write_pickle_archive(
      path, pickle_of(tied.plan), tied.storages.size(), [&](std::size_t storage) { return tied.storages[storage]; },
      advance);
}

void write_pickle(const std::filesystem::path& path, const NamedSpecs& tensors,
                  const std::function<at::Tensor(const std::string& name)>& source, const WriteProgress& advance) {
  write_pickle_archive(
      path, pickle_of(plan_pickle(tensors)), tensors.size(),
      [&](std::size_t storage) { return source(tensors[storage].first); }, advance);
}

}  // namespace hortator::formats
