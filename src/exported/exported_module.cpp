#include <algorithm>
#include <hortator/error.hpp>
#include <hortator/models/exported.hpp>
#include <utility>

#include "core/text/text.hpp"
#include "exported/file/fault.hpp"
#include "exported/forms.hpp"
#include "exported/saved_model.hpp"
#include "formats/file/file_error.hpp"
#include "paging/deferred/plainly.hpp"

namespace hortator {
namespace {

using exported::ExportFault;

constexpr const char* evaluation_program = "eval";

/// The program to train: "model", or the only one.
std::string main_program(const exported::Archive& archive) {
  const auto& programs = archive.programs();
  if (std::ranges::find(programs, "model") != programs.end()) return "model";
  if (programs.size() == 1) return programs.front();
  throw ExportFault(text::concat("it holds several programs, and none is named 'model': ", text::join(programs)),
                    "write each in a file of its own with torch.export.save");
}

std::unique_ptr<exported::Forms> forms_of(const std::shared_ptr<const exported::OpenArchive>& file) {
  const auto& archive = file->archive;
  const auto name = main_program(archive);
  const auto stored = exported::read_stored_program(archive, name);
  exported::ModuleTensors tensors(file, stored);
  const auto runner_of = [&tensors](const exported::StoredProgram& program) {
    return std::make_unique<exported::ProgramRunner>(
        program.program, [&](const exported::InputSpec& input) { return tensors.find(program, input); });
  };
  auto program = runner_of(stored);
  std::unique_ptr<exported::ProgramRunner> evaluation;
  const auto& programs = archive.programs();
  if (name != evaluation_program && std::ranges::find(programs, evaluation_program) != programs.end())
    evaluation = runner_of(exported::read_stored_program(archive, evaluation_program));
  if (evaluation && evaluation->input_names() != program->input_names())
    throw ExportFault("its program for evaluation takes other inputs");
  return std::make_unique<exported::Forms>(std::move(tensors), std::move(program), std::move(evaluation));
}

[[noreturn]] void refuse_file(const std::filesystem::path& file, const std::string& why, const std::string& hint) {
  throw formats::FileError(
      {.what = text::concat(file, " cannot be used as an exported model: ", why),
       .hint = hint.empty() ? "it is damaged: export the model again, or copy the file again" : hint});
}

std::size_t index_of(const std::vector<std::string>& names, const std::string& name, const char* what) {
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) {
    throw UsageError({.what = text::concat("The exported model has no ", what, " ", text::quote(name)),
                      .hint = text::suggestion(name, names)});
  }
  return static_cast<std::size_t>(found - names.begin());
}

}  // namespace

const at::Tensor& ExportedOutputs::operator[](const std::string& name) const {
  return tensors.at(index_of(*names, name, "output"));
}

ExportedModule::ExportedModule(std::unique_ptr<exported::Forms> forms)
    : torch::nn::Module("ExportedModule"), forms_(std::move(forms)) {
  forms_->tensors().register_in(*this);
}

ExportedModule::~ExportedModule() = default;

ExportedOutputs ExportedModule::forward(const std::vector<at::Tensor>& inputs) {
  return forms_->run(inputs, is_training());
}

ExportedOutputs ExportedModule::forward(const std::map<std::string, at::Tensor>& inputs) {
  const auto& names = input_names();
  for (const auto& [name, tensor] : inputs) index_of(names, name, "input");
  std::vector<at::Tensor> ordered;
  for (const auto& name : names) {
    const auto found = inputs.find(name);
    if (found == inputs.end())
      throw UsageError({.what = text::concat("Input ", text::quote(name), " of the exported model is missing")});
    ordered.push_back(found->second);
  }
  return forward(ordered);
}

const std::vector<std::string>& ExportedModule::input_names() const { return forms_->input_names(); }

std::map<std::string, std::string> ExportedModule::tied_names() const { return forms_->tensors().other_names(); }

const std::vector<std::string>& ExportedModule::output_names() const { return forms_->output_names(); }

void ExportedModule::write(const std::filesystem::path& file) const {
  const exported::ArchiveCopy copy(forms_->tensors().archive(), forms_->tensors());
  for (const auto& parameter : copy.parameters()) exported::values_on_this_rank(parameter);  // before a file is made
  copy.write(file, exported::values_on_this_rank);
}

std::shared_ptr<ExportedModule> exported_module(const std::filesystem::path& file) {
  const paging::Unrecorded unrecorded;  // the file is read with memory of its own
  try {
    return std::make_shared<ExportedModule>(forms_of(exported::open_archive(file)));
  } catch (const ExportFault& fault) {
    refuse_file(file, fault.what(), fault.hint());
  } catch (const formats::ZipFault& fault) {
    refuse_file(file, fault.what(), "");
  }
}

}  // namespace hortator
