#include "tools/checkpoint/accelerate_export.hpp"

#include <hortator/error.hpp>
#include <iostream>
#include <memory>

#include "accelerator/interop/accelerate/folder.hpp"
#include "accelerator/interop/accelerate/python_files.hpp"
#include "accelerator/weights/checkpoint_weights.hpp"
#include "checkpoint/read/reader.hpp"
#include "core/text/text.hpp"
#include "formats/file/raw_file.hpp"
#include "formats/file/replacement.hpp"
#include "formats/torch/pickle/value_writer.hpp"
#include "mpi/agree.hpp"
#include "mpi/collectives.hpp"
#include "tools/checkpoint/listing.hpp"
#include "tools/checkpoint/weights_file.hpp"

namespace hortator::tools::checkpoints {
namespace {

namespace fs = std::filesystem;

class AccelerateExport {
 public:
  AccelerateExport(const mpi::Communicator& comm, const fs::path& from, fs::path to) : comm_(comm), to_(std::move(to)) {
    std::string found;
    mpi::all_or_none(comm_, [&] {
      if (comm_.rank() != 0) return;
      found = newest_at(from).string();  // only one looks: a run may save there
      if (!checkpoint::exists(found)) {
        throw UsageError({.what = text::concat(text::quote(from.string()), " is not a checkpoint of save_state"),
                          .why = "only such a checkpoint has optimizers and random numbers",
                          .hint = "for weights alone, name a file: hortator checkpoint export IN OUT.safetensors"});
      }
      if (!fs::exists(to_)) return;
      throw UsageError(
          {.what = text::concat(to_, " exists"), .why = "a folder is not replaced", .hint = "name a new folder"});
    });
    from_ = mpi::broadcast(comm_, std::string_view(found));
    mpi::all_or_none(comm_, [&] { reader_ = std::make_unique<checkpoint::Reader>(from_); });
    staged_ = to_.string() + ".new-" + mpi::broadcast(comm_, formats::replacement_id());
  }

  /// @collective
  void write() {
    try {
      mpi::all_or_none(comm_, [&] {
        if (comm_.rank() == 0) formats::make_folder_durably(staged_);
      });
      write_models();
      mpi::all_or_none(comm_, [&] {
        if (comm_.rank() == 0) write_states();
      });
      mpi::all_or_none(comm_, [&] { write_random_states(); });
      mpi::all_or_none(comm_, [&] {
        if (comm_.rank() == 0) publish();
      });
    } catch (...) {
      std::error_code ignored;
      if (comm_.rank() == 0) fs::remove_all(staged_, ignored);
      throw;
    }
  }

  void report() const {
    if (comm_.rank() != 0) return;
    std::cout << to_.string() << ": " << text::count(static_cast<long long>(count("models")), "model") << ", "
              << text::count(static_cast<long long>(count("optimizers")), "optimizer") << " and the random numbers of "
              << text::count(reader_->world_size(), "rank") << " from " << from_.string() << '\n';
    for (const auto& line : accelerator::left_out_for_python(*reader_)) std::cout << "left out: " << line << '\n';
  }

 private:
  std::size_t count(const char* what) const {
    const auto name = text::concat("run/", what);
    return reader_->values().contains(name) ? reader_->values().get<std::size_t>(name) : 0;
  }

  void write_models() {
    for (std::size_t i = 0; i < count("models"); ++i) {
      std::unique_ptr<weights::WeightSource> source;
      mpi::all_or_none(comm_, [&] { source = accelerator::open_weights_or_checkpoint(from_, i); });
      write_safetensors(comm_, *source, staged_ / accelerator::numbered_file("model", i, ".safetensors"));
    }
  }

  void write_file(const accelerator::PythonFile& file) const {
    formats::write_pickle_value(staged_ / file.name, file.value, [&](const std::string& name) {
      const auto own = file.tensors.find(name);
      return own != file.tensors.end() ? own->second : reader_->read(name);
    });
  }

  void write_states() const {
    for (std::size_t i = 0; i < count("optimizers"); ++i) write_file(accelerator::optimizer_for_python(*reader_, i));
    for (std::size_t i = 0; i < count("schedules"); ++i) write_file(accelerator::schedule_for_python(*reader_, i));
    if (reader_->values().contains("scaler/scale")) write_file(accelerator::scaler_for_python(*reader_));
    std::size_t number = 0;
    for (const auto& object : accelerator::objects_in(*reader_))
      write_file(accelerator::object_for_python(*reader_, object, number++));
  }

  void write_random_states() const {
    for (int rank = comm_.rank(); rank < reader_->world_size(); rank += comm_.size())
      write_file(accelerator::random_for_python(*reader_, rank));
  }

  void publish() const {
    formats::sync_folder(staged_);
    formats::rename(staged_, to_);
    formats::sync_folder(to_.parent_path());
  }

  const mpi::Communicator& comm_;
  fs::path from_;
  fs::path to_;
  fs::path staged_;
  std::unique_ptr<checkpoint::Reader> reader_;
};

}  // namespace

int export_for_accelerate(const fs::path& from, const fs::path& to) {
  return on_all_ranks([&](const mpi::Communicator& comm) {
    AccelerateExport job(comm, from, fs::absolute(to).lexically_normal());
    job.write();
    job.report();
  });
}

}  // namespace hortator::tools::checkpoints
