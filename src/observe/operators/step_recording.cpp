#include "observe/operators/step_recording.hpp"

#include <fstream>
#include <hortator/error.hpp>
#include <system_error>
#include <utility>

#include "core/log.hpp"
#include "core/text/text.hpp"
#include "core/whole_file.hpp"

namespace hortator::observe {
namespace {

std::filesystem::path file_of(const RecordOptions& options, int rank) { return options.operators / record_file(rank); }

}  // namespace

// A record of an earlier run must not be taken for that of this one.
void clear_record(const RecordOptions& options, int rank) {
  std::error_code error;
  std::filesystem::create_directories(options.operators, error);
  const auto file = file_of(options, rank);
  const bool is_writable = !error && std::ofstream(file).good();
  std::filesystem::remove(file, error);
  if (is_writable) return;
  throw UsageError({.what = text::concat("record.operators: ", text::quote(options.operators.string()),
                                         " is not a folder that can be written"),
                    .why = "each rank writes the operators of the step there",
                    .hint = "choose another folder (--record-operators)"});
}

StepRecording::StepRecording(const RecordOptions& options, Tensors tensors, int rank, int ranks)
    : options_(options), tensors_(std::move(tensors)), rank_(rank), ranks_(ranks) {}

StepRecording::~StepRecording() {
  if (is_written_ || rank_ != 0) return;
  log::warn("record.step is ", options_.step, ", and the run has ended after ", text::count(updates_, "update"),
            ": no operators were recorded");
}

void StepRecording::note_prepared() {
  if (options_.step == 1 && updates_ == 0) begin();
}

void StepRecording::begin() {
  recorder_.reset();
  recorder_ = std::make_unique<OperatorRecorder>(tensors_.parameters());
  recorder_->note("parameter", tensors_.stepped());
}

void StepRecording::begin_part(int number) {
  if (recorder_) recorder_->begin_part(number);
}

void StepRecording::before_update() {
  if (!recorder_) return;
  NamedTensors gradients;
  for (const auto& [name, tensor] : tensors_.stepped()) gradients.emplace_back(name, tensor.grad());
  recorder_->note("gradient", gradients);
  recorder_->begin_update();
}

void StepRecording::after_update() {
  ++updates_;
  if (recorder_) {
    recorder_->note("updated parameter", tensors_.stepped());
    write();
  } else if (updates_ + 1 == options_.step) {
    begin();
  }
}

// A rank alone cannot throw here.
void StepRecording::write() {
  StepRecord record{.step = options_.step, .rank = rank_, .ranks = ranks_, .operators = recorder_->take()};
  recorder_.reset();
  is_written_ = true;
  const auto file = file_of(options_, record.rank);
  if (!core::write_whole(file, file.string() + ".new", to_text(record))) {
    log::warn("the operators of step ", options_.step, " could not be written to ", file.string());
  } else if (record.rank == 0) {
    log::info("recorded ", text::count(static_cast<long long>(record.operators.size()), "operator"), " of step ",
              options_.step, " in ", options_.operators.string());
  }
}

}  // namespace hortator::observe
