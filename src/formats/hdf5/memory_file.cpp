#include "formats/hdf5/memory_file.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <new>
#include <vector>

#include "formats/file/raw_file.hpp"

namespace hortator::formats {
namespace {

// The driver, which HDF5 calls. HDF5 is C code, so the driver must not throw.

/// An open file. The member of HDF5 must come first.
struct DriverFile {
  H5FD_t hdf5;
  MemoryFile* memory;
};

DriverFile* ours(H5FD_t* file) { return reinterpret_cast<DriverFile*>(file); }
const DriverFile* ours(const H5FD_t* file) { return reinterpret_cast<const DriverFile*>(file); }

template <typename Work>
herr_t guarded(const Work& work) noexcept {
  try {
    work();
    return 0;
  } catch (...) {
    return -1;
  }
}

H5FD_t* open(const char*, unsigned, hid_t access, haddr_t) noexcept {
  const auto* info = static_cast<MemoryFile* const*>(H5Pget_driver_info(access));
  if (info == nullptr) return nullptr;
  auto* file = new (std::nothrow) DriverFile{};
  if (file == nullptr) return nullptr;
  file->memory = *info;
  return &file->hdf5;
}

herr_t close(H5FD_t* file) noexcept {
  delete ours(file);
  return 0;
}

herr_t query(const H5FD_t*, unsigned long* features) noexcept {
  // No aggregation of small data: HDF5 requests each dataset separately, in the order of creation.
  *features = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA;
  return 0;
}

haddr_t allocate(H5FD_t* file, H5FD_mem_t type, hid_t, hsize_t bytes) noexcept {
  using Content = MemoryFile::Content;
  return ours(file)->memory->allocate(type == H5FD_MEM_DRAW ? Content::tensor : Content::structure, bytes);
}

haddr_t end_of_allocation(const H5FD_t* file, H5FD_mem_t) noexcept { return ours(file)->memory->end_of_allocation(); }
haddr_t end_of_file(const H5FD_t* file, H5FD_mem_t) noexcept { return ours(file)->memory->bytes(); }

herr_t set_end_of_allocation(H5FD_t* file, H5FD_mem_t, haddr_t address) noexcept {
  ours(file)->memory->set_end_of_allocation(address);
  return 0;
}

herr_t read(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t address, std::size_t bytes, void* data) noexcept {
  return guarded([&] { ours(file)->memory->read_at(address, data, bytes); });
}

herr_t write(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t address, std::size_t bytes, const void* data) noexcept {
  return guarded([&] { ours(file)->memory->write_at(address, data, bytes); });
}

herr_t truncate(H5FD_t* file, hid_t, hbool_t) noexcept {
  ours(file)->memory->resize(ours(file)->memory->end_of_allocation());
  return 0;
}

hid_t register_driver() {
  const Hdf5Lock lock;
  H5FD_class_t driver{};
#if H5_VERSION_GE(1, 13, 0)
  driver.version = H5FD_CLASS_VERSION;
  driver.value = 511;  // a number for private drivers
#endif
  driver.name = "hortator_memory";
  driver.maxaddr = std::numeric_limits<std::int64_t>::max();
  driver.fc_degree = H5F_CLOSE_WEAK;
  driver.fapl_size = sizeof(MemoryFile*);
  driver.open = open;
  driver.close = close;
  driver.query = query;
  driver.alloc = allocate;
  driver.get_eoa = end_of_allocation;
  driver.set_eoa = set_end_of_allocation;
  driver.get_eof = end_of_file;
  driver.read = read;
  driver.write = write;
  driver.truncate = truncate;
  return check(H5FDregister(&driver), "register a driver for files in memory");
}

/// Calls `work(page, within, done, count)` for the part of a range in each page.
template <typename Work>
void for_each_page(std::uint64_t offset, std::size_t bytes, std::uint64_t page_bytes, const Work& work) {
  for (std::size_t done = 0; done < bytes;) {
    const auto within = (offset + done) % page_bytes;
    const auto count = std::min<std::size_t>(bytes - done, page_bytes - within);
    work(offset + done - within, within, done, count);
    done += count;
  }
}

}  // namespace

MemoryFile::MemoryFile(const FileLayout& parting)
    : parting_(parting), next_tensor_(parting.data_begin), end_(parting.end), driver_(register_driver()) {}

void MemoryFile::use_in(const PropertyList& access) {
  const Hdf5Lock lock;
  const auto* self = this;
  check(H5Pset_driver(access.get(), driver_.get(), &self), "use a file in memory");
}

void MemoryFile::write_at(std::uint64_t offset, const void* data, std::size_t bytes) {
  for_each_page(offset, bytes, page_bytes, [&](auto page, auto within, auto done, auto count) {
    std::memcpy(pages_[page].data() + within, static_cast<const std::byte*>(data) + done, count);
  });
  bytes_ = std::max(bytes_, offset + bytes);
}

void MemoryFile::read_at(std::uint64_t offset, void* data, std::size_t bytes) const {
  std::memset(data, 0, bytes);
  for_each_page(offset, bytes, page_bytes, [&](auto page, auto within, auto done, auto count) {
    const auto found = pages_.find(page);
    if (found != pages_.end()) std::memcpy(static_cast<std::byte*>(data) + done, found->second.data() + within, count);
  });
}

std::uint64_t MemoryFile::allocate(Content content, std::uint64_t bytes) {
  const auto count = static_cast<std::int64_t>(bytes);
  auto& next = content == Content::tensor ? next_tensor_ : next_structure_;
  const auto room_end = content == Content::tensor ? parting_.end : parting_.data_begin;
  const auto aligned = [&](std::int64_t after) {
    return content == Content::tensor ? place_dataset(after, count) : after;
  };
  const bool has_room = aligned(next) + count <= room_end;
  const auto begin = aligned(has_room ? next : end_);
  if (has_room) next = begin + count;
  end_ = std::max(end_, begin + count);
  return static_cast<std::uint64_t>(begin);
}

// HDF5 releases what it has not used at the end; the planned ranges stay.
void MemoryFile::set_end_of_allocation(std::uint64_t end) {
  end_ = std::max(static_cast<std::int64_t>(end), parting_.end);
}

void MemoryFile::copy_to(const RawFile& file) const {
  constexpr std::size_t max_pages = 64;  // in one write
  const auto data_begin = static_cast<std::uint64_t>(parting_.data_begin);
  const auto data_end = static_cast<std::uint64_t>(parting_.end);
  file.resize(bytes_);
  std::vector<std::byte> run;
  std::uint64_t begin = 0;
  const auto write = [&](std::uint64_t from, std::uint64_t to) {
    from = std::max(from, begin);
    to = std::min({to, begin + run.size(), bytes_});
    if (from < to) file.write_at(static_cast<std::int64_t>(from), run.data() + (from - begin), to - from);
  };
  const auto flush = [&] {
    // A page may reach into the tensors' range, where other ranks write at the same time.
    write(0, data_begin);
    write(std::max(data_begin, data_end), bytes_);
    run.clear();
  };
  for (const auto& [offset, page] : pages_) {
    if (offset != begin + run.size() || run.size() == max_pages * page_bytes) flush();
    if (run.empty()) begin = offset;
    run.insert(run.end(), page.begin(), page.end());
  }
  flush();
}

}  // namespace hortator::formats
