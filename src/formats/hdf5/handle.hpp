#pragma once

#include <hdf5.h>

#include <concepts>
#include <source_location>
#include <string>
#include <string_view>
#include <utility>

#include "core/log.hpp"
#include "formats/file/file_error.hpp"

namespace hortator::formats {

/// Throws FileError "Cannot <task>: <message of HDF5>". The caller must hold Hdf5Lock, else the message may be another
/// thread's.
[[noreturn]] void throw_hdf5_error(std::string_view task, std::source_location where);

/// Throws if `result` is negative, as HDF5 reports failure; else returns it.
template <std::signed_integral T>
T check(T result, std::string_view task, std::source_location where = std::source_location::current()) {
  if (result < 0) throw_hdf5_error(task, where);
  return result;
}

/// Must be held around every use of HDF5, which distributions build without thread safety. While it is held, HDF5
/// prints nothing; its messages go into our errors. Recursive.
class Hdf5Lock {
 public:
  Hdf5Lock();
  ~Hdf5Lock();
  Hdf5Lock(const Hdf5Lock&) = delete;
  Hdf5Lock& operator=(const Hdf5Lock&) = delete;

 private:
  // The application's error handler, restored at the end.
  H5E_auto2_t print_ = nullptr;
  void* print_data_ = nullptr;
  bool silenced_ = false;
};

/// Owns an HDF5 identifier that check() returned, and closes it with `Close`. Move-only.
template <herr_t (*Close)(hid_t)>
class Handle {
 public:
  explicit Handle(hid_t owned) : id_(owned) {}
  ~Handle() { close_quietly(); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, H5I_INVALID_HID)) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(id_, other.id_);
    return *this;
  }

  hid_t get() const { return id_; }

  /// Call for written files: closing writes remaining data and may fail.
  void close(std::string_view task) {
    const Hdf5Lock lock;
    check(Close(std::exchange(id_, H5I_INVALID_HID)), task);
  }

 private:
  void close_quietly() noexcept {
    if (id_ < 0) return;
    const Hdf5Lock lock;
    if (Close(id_) < 0) log::warn("HDF5 could not close identifier ", id_);
  }

  hid_t id_;
};

using File = Handle<H5Fclose>;
using Group = Handle<H5Gclose>;
using Dataset = Handle<H5Dclose>;
using Object = Handle<H5Oclose>;
using Attribute = Handle<H5Aclose>;
using Space = Handle<H5Sclose>;
using Type = Handle<H5Tclose>;
using PropertyList = Handle<H5Pclose>;

}  // namespace hortator::formats
