#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace hortator::formats {

/// Why a file is not a tar archive, or has what is not supported. The caller adds the name of the file.
class TarFault : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

constexpr std::uint64_t tar_block_bytes = 512;

/// The block that describes a member of a tar archive. Numbers that are not valid throw TarFault.
class TarHeader {
 public:
  using Block = std::array<char, tar_block_bytes>;
  explicit TarHeader(const Block& block) : block_(block) {}

  bool is_zero() const;
  bool has_right_sum() const;
  char type() const;
  std::string name() const;
  std::uint64_t bytes() const;  ///< of the member's content

 private:
  struct Field {
    std::size_t begin, size;
  };
  std::string text_in(const Field& field) const;
  std::uint64_t number_in(const Field& field) const;

  Block block_;
};

}  // namespace hortator::formats
