#include "exported/saved_model.hpp"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <hortator/error.hpp>

#include "core/text/text.hpp"
#include "formats/file/replaced_file.hpp"
#include "formats/torch/zip/writer.hpp"
#include "interception/claims.hpp"
#include "interception/dispatch_keys.hpp"
#include "paging/deferred/deferred_provider.hpp"
#include "paging/pager.hpp"

namespace hortator::exported {
namespace {

std::string contents_of(const Archive& archive, const std::string& record) {
  std::string contents(archive.size(record), '\0');
  archive.read(record, 0, contents.data(), contents.size());
  return contents;
}

/// Whether other ranks take part in reading the tensor, or have it in place of this one.
bool is_divided(const at::Tensor& tensor) {
  if (interception::carries_divided_key(tensor)) return true;
  const auto claim = interception::claim_of(tensor);
  if (!claim || dynamic_cast<const paging::DeferredProvider*>(claim.provider) != nullptr) return false;
  const auto* pager = dynamic_cast<const paging::Pager*>(claim.provider);
  return pager == nullptr || pager->needs_ranks();
}

}  // namespace

ArchiveCopy::ArchiveCopy(const OpenArchive& archive, const ModuleTensors& tensors) : archive_(archive) {
  const auto add = [this](const std::string& name, const Payload& payload, at::Tensor tensor) {
    if (!tensor.defined()) return;  // of another program, which is not used, or a constant
    records_[payload.record].push_back({.name = name, .payload = payload, .tensor = std::move(tensor)});
  };
  for (const auto& name_of_program : archive.archive.programs()) {
    const auto program = read_stored_program(archive.archive, name_of_program);
    for (const auto& [name, payload] : program.weights) add(name, payload, tensors.of_state(name));
    for (const auto& [name, payload] : program.constants) add(name, payload, tensors.other_buffer(name));
  }
}

std::vector<NamedTensor> ArchiveCopy::parameters_in(const std::vector<StoredTensor>& stored) {
  std::vector<NamedTensor> parameters;
  for (const auto& [name, payload, tensor] : stored) {
    const auto is_same = [&t = tensor](const NamedTensor& one) { return one.tensor.is_same(t); };
    if (payload.is_parameter && std::ranges::none_of(parameters, is_same))
      parameters.push_back({.name = name, .tensor = tensor});
  }
  return parameters;
}

std::vector<NamedTensor> ArchiveCopy::parameters() const {
  std::vector<NamedTensor> all;
  for (const auto& record : archive_.archive.records()) {
    const auto found = records_.find(record);
    if (found == records_.end()) continue;
    const auto here = parameters_in(found->second);
    all.insert(all.end(), here.begin(), here.end());
  }
  return all;
}

/// The bytes of a record with the values of its tensors.
std::string ArchiveCopy::updated(const std::string& record, const std::vector<StoredTensor>& stored,
                                 const WholeValues& whole) const {
  const at::NoGradGuard no_grad;
  std::map<const void*, at::Tensor> values;
  for (const auto& parameter : parameters_in(stored))
    values.emplace(parameter.tensor.unsafeGetTensorImpl(), whole(parameter));
  PayloadReader reader(archive_.archive);
  at::Tensor bytes;
  for (const auto& [name, payload, tensor] : stored) {
    const auto view = reader.read(payload);
    if (!view.is_non_overlapping_and_dense() || view.numel() == 0) continue;  // a view that was expanded
    const auto found = values.find(tensor.unsafeGetTensorImpl());
    view.copy_(found == values.end() ? tensor : found->second);
    bytes = view;
  }
  if (!bytes.defined()) return contents_of(archive_.archive, record);
  return {static_cast<const char*>(bytes.storage().data()), bytes.storage().nbytes()};
}

void ArchiveCopy::write(const std::filesystem::path& target, const WholeValues& whole) const {
  const auto& archive = archive_.archive;
  formats::replace_file(target, [&](const formats::RawFile& file) {
    formats::ZipWriter writer(file);
    for (const auto& record : archive.records()) {
      const auto stored = records_.find(record);
      const auto contents =
          stored == records_.end() ? contents_of(archive, record) : updated(record, stored->second, whole);
      writer.add(archive.folder() + record, contents);
    }
    writer.finish();
  });
}

at::Tensor values_on_this_rank(const NamedTensor& parameter) {
  if (!is_divided(parameter.tensor)) return parameter.tensor;
  throw UsageError({.what = text::concat("The parameter ", text::quote(parameter.name), " is divided among ranks"),
                    .why = "write(file) is called by one rank, which has only a part of it",
                    .hint = "call write(accelerator, file) on all ranks"});
}

}  // namespace hortator::exported
