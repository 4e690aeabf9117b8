#include "exported/saved_model.hpp"

#include <ATen/core/grad_mode.h>

#include <hortator/error.hpp>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/text/text.hpp"
#include "formats/file/replaced_file.hpp"
#include "formats/torch/zip/writer.hpp"
#include "paging/interception/storage_state.hpp"

namespace hortator::exported {
namespace {

/// The tensors of each record of weights, by the name of the record.
using Views = std::multimap<std::string, std::pair<Payload, at::Tensor>>;

void require_whole_parameter(const std::string& name, const at::Tensor& tensor) {
  if (!paging::carries_key(tensor) && !paging::carries_divided_key(tensor)) return;
  throw UsageError({.what = text::concat("The parameter ", text::quote(name), " is divided among ranks"),
                    .why = "this rank has only a part of it",
                    .hint = "call Accelerator::save_model, and load its files into a new exported_module()"});
}

Views views_of(const Archive& archive, const ModuleTensors& tensors) {
  Views views;
  for (const auto& program : archive.programs()) {
    for (const auto& [name, payload] : read_stored_program(archive, program).weights) {
      const auto tensor = tensors.of_state(name);
      if (!tensor.defined()) continue;  // of another program, which is not used
      require_whole_parameter(name, tensor);
      views.emplace(payload.record, std::pair(payload, tensor));
    }
  }
  return views;
}

std::string contents_of(const Archive& archive, const std::string& record) {
  std::string contents(archive.size(record), '\0');
  archive.read(record, 0, contents.data(), contents.size());
  return contents;
}

/// The bytes of a record with the values of its tensors.
std::string updated(const Archive& archive, const std::string& record, const Views& views) {
  const at::NoGradGuard no_grad;
  PayloadReader reader(archive);
  at::Tensor whole;
  for (auto [view, end] = views.equal_range(record); view != end; ++view) {
    const auto& [payload, tensor] = view->second;
    const auto stored = reader.read(payload);
    if (!stored.is_non_overlapping_and_dense() || stored.numel() == 0) continue;  // a view that was expanded
    stored.copy_(tensor);
    whole = stored;
  }
  if (!whole.defined()) return contents_of(archive, record);
  return {static_cast<const char*>(whole.storage().data()), whole.storage().nbytes()};
}

void write_archive(const OpenArchive& open, const Views& views, const formats::RawFile& out) {
  formats::ZipWriter writer(out);
  for (const auto& record : open.archive.records()) {
    const auto contents =
        views.contains(record) ? updated(open.archive, record, views) : contents_of(open.archive, record);
    writer.add(open.archive.folder() + record, contents);
  }
  writer.finish();
}

}  // namespace

void save_archive(const OpenArchive& archive, const ModuleTensors& tensors, const std::filesystem::path& target) {
  const auto views = views_of(archive.archive, tensors);
  formats::replace_file(target, [&](const formats::RawFile& file) { write_archive(archive, views, file); });
}

}  // namespace hortator::exported
