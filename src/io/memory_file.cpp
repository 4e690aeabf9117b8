#include "io/memory_file.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <new>

#include "io/raw_file.hpp"

namespace hortator::io {
namespace {

// --- the driver: how HDF5 calls us. It is C, so nothing may be thrown through it.
// ---------------------------------------------------

/// What HDF5 holds for an open file: its own part must come first.
struct DriverFile {
  H5FD_t hdf5;
  MemoryFile* memory;
  haddr_t end_of_allocation;
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
  *features = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_AGGREGATE_SMALLDATA;
  return 0;
}

haddr_t end_of_allocation(const H5FD_t* file, H5FD_mem_t) noexcept { return ours(file)->end_of_allocation; }
haddr_t end_of_file(const H5FD_t* file, H5FD_mem_t) noexcept { return ours(file)->memory->bytes(); }

herr_t set_end_of_allocation(H5FD_t* file, H5FD_mem_t, haddr_t address) noexcept {
  ours(file)->end_of_allocation = address;
  return 0;
}

herr_t read(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t address, std::size_t bytes, void* data) noexcept {
  return guarded([&] { ours(file)->memory->read_at(address, data, bytes); });
}

herr_t write(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t address, std::size_t bytes, const void* data) noexcept {
  return guarded([&] { ours(file)->memory->write_at(address, data, bytes); });
}

herr_t truncate(H5FD_t* file, hid_t, hbool_t) noexcept {
  ours(file)->memory->resize(ours(file)->end_of_allocation);
  return 0;
}

hid_t register_driver() {
  const Hdf5Lock lock;
  H5FD_class_t driver{};
#if H5_VERSION_GE(1, 13, 0)
  driver.version = H5FD_CLASS_VERSION;
  driver.value = 511;  // of those for private use
#endif
  driver.name = "hortator_memory";
  driver.maxaddr = std::numeric_limits<std::int64_t>::max();
  driver.fc_degree = H5F_CLOSE_WEAK;
  driver.fapl_size = sizeof(MemoryFile*);
  driver.open = open;
  driver.close = close;
  driver.query = query;
  driver.get_eoa = end_of_allocation;
  driver.set_eoa = set_end_of_allocation;
  driver.get_eof = end_of_file;
  driver.read = read;
  driver.write = write;
  driver.truncate = truncate;
  return check(H5FDregister(&driver), "register a driver for files in memory");
}

/// Calls `work(page, within, done, count)` for each stretch of a range that lies in one page.
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

MemoryFile::MemoryFile() : driver_(register_driver()) {}

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

void MemoryFile::copy_to(const std::filesystem::path& path) const {
  auto file = RawFile::create(path);
  file.resize(bytes_);
  for (const auto& [offset, page] : pages_) {
    if (offset >= bytes_) break;
    file.write_at(static_cast<std::int64_t>(offset), page.data(), std::min(page_bytes, bytes_ - offset));
  }
  file.sync();
  file.close();
}

}  // namespace hortator::io
