#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

namespace hortator::runtime {

/// A text in shared memory that one process replaces while others read it. Whenever the writer is stopped or killed,
/// they still read its last whole text. Zeroes are an empty page. `Word` is std::atomic<std::uint64_t>; a test
/// (status_page_test.cpp) uses one whose loads and stores it interleaves in every order.
template <typename Word, std::size_t bytes>
class StatusPage {
 public:
  /// Only for the owner. `text` is padded with spaces to a multiple of 8 bytes. At most `bytes` of it.
  void write(std::string text) {
    text.resize((text.size() + 7) / 8 * 8, ' ');
    const auto version = version_.load(std::memory_order_relaxed) + 1;
    auto& copy = copies_[version % 2];
    for (std::size_t i = 0; i < text.size() / 8; ++i) {
      std::uint64_t word = 0;
      std::memcpy(&word, text.data() + i * 8, 8);
      copy.text[i].store(word, std::memory_order_release);
    }
    copy.length.store(text.size() / 8, std::memory_order_release);
    version_.store(version, std::memory_order_release);
  }

  /// Empty if there is none, or if it was replaced again and again while this process read it.
  std::string read() const {
    for (int attempt = 0; attempt < 100; ++attempt) {
      const auto version = version_.load(std::memory_order_acquire);
      const auto& copy = copies_[version % 2];
      const auto length = std::min<std::size_t>(copy.length.load(std::memory_order_acquire), copy.text.size());
      std::string text(length * 8, ' ');
      for (std::size_t i = 0; i < length; ++i) {
        const auto word = copy.text[i].load(std::memory_order_acquire);
        std::memcpy(text.data() + i * 8, &word, 8);
      }
      // The owner writes to this copy again only after it has raised the version.
      if (version == version_.load(std::memory_order_relaxed)) return text;
    }
    return {};
  }

 private:
  struct Copy {
    Word length;  ///< in units of 8 bytes
    std::array<Word, bytes / 8> text;
  };
  Word version_;  ///< the text is in the copy of its parity; the owner writes to the other one
  std::array<Copy, 2> copies_;
};

}  // namespace hortator::runtime
