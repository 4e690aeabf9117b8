#pragma once

#include <hortator/hortator.h>
#include <mpi.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

namespace hortator::test {

inline int world_rank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

inline int world_size() {
  int size = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return size;
}

/// An array of the test with its shape, and strides if they are given.
class Array {
 public:
  Array(void* data, hortator_type type, std::vector<std::int64_t> shape, std::vector<std::int64_t> stride = {})
      : shape_(std::move(shape)), stride_(std::move(stride)) {
    array_ = {.data = data,
              .shape = shape_.data(),
              .stride = stride_.empty() ? nullptr : stride_.data(),
              .rank = static_cast<std::int32_t>(shape_.size()),
              .type = type,
              .memory = HORTATOR_HOST,
              .stream = nullptr};
  }
  Array(std::vector<float>& data, std::vector<std::int64_t> shape)
      : Array(data.data(), HORTATOR_F32, std::move(shape)) {}
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;

  const hortator_array* get() const { return &array_; }

 private:
  std::vector<std::int64_t> shape_;
  std::vector<std::int64_t> stride_;
  hortator_array array_{};
};

/// A settings file in the working directory, written by rank 0. Its run has a folder of its own, which is removed first
/// unless it is to be continued.
inline std::string settings_file(const std::string& name, const std::string& text, bool is_continued = false) {
  const auto file = name + ".yaml";
  if (world_rank() == 0) {
    if (!is_continued) std::filesystem::remove_all("run_" + name);
    std::ofstream(file) << "cpu: true\nseed: 1\nrun_dir: run_" << name << '\n' << text;
  }
  MPI_Barrier(MPI_COMM_WORLD);
  return file;
}

/// A run over all ranks, ended by the destructor.
class CRun {
 public:
  explicit CRun(const std::string& settings) {
    status_ = hortator_begin(MPI_Comm_c2f(MPI_COMM_WORLD), settings.c_str(), &run_);
  }
  ~CRun() { end(); }
  CRun(const CRun&) = delete;
  CRun& operator=(const CRun&) = delete;

  hortator_status status() const { return status_; }
  operator hortator_run*() const { return run_; }
  void end() {
    if (run_ != nullptr) hortator_end(std::exchange(run_, nullptr), nullptr);
  }
  void forget() { run_ = nullptr; }  ///< the test has ended it
  hortator_model* model(const char* name) const {
    hortator_model* model = nullptr;
    hortator_model_create(run_, name, &model);
    return model;
  }
  hortator_buffer* buffer(const char* name) const {
    hortator_buffer* buffer = nullptr;
    hortator_buffer_create(run_, name, &buffer);
    return buffer;
  }

 private:
  hortator_run* run_ = nullptr;
  hortator_status status_ = HORTATOR_FAILED;
};

/// A batch of arrays, freed by the destructor.
class CBatch {
 public:
  explicit CBatch(hortator_run* run) { hortator_batch_create(run, &batch_); }
  ~CBatch() { hortator_batch_free(batch_); }
  CBatch(const CBatch&) = delete;
  CBatch& operator=(const CBatch&) = delete;

  operator hortator_batch*() const { return batch_; }
  CBatch& add(hortator_role role, const Array& array) {
    status_ = hortator_batch_add(batch_, role, array.get());
    return *this;
  }
  hortator_status status() const { return status_; }

 private:
  hortator_batch* batch_ = nullptr;
  hortator_status status_ = HORTATOR_OK;
};

/// Whether all ranks have the same status.
inline bool same_on_all(hortator_status status) {
  std::array<int, 2> bounds = {static_cast<int>(status), -static_cast<int>(status)};
  MPI_Allreduce(MPI_IN_PLACE, bounds.data(), 2, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  return bounds[0] == -bounds[1];
}

inline bool error_has(const std::string& text) {
  return std::string(hortator_last_error()).find(text) != std::string::npos;
}

}  // namespace hortator::test
