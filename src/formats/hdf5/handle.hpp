#pragma once

#include <hdf5.h>

#include <string>
#include <utility>

#include "core/log.hpp"
#include "formats/hdf5/error.hpp"
#include "formats/hdf5/lock.hpp"

namespace hortator::formats {

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
