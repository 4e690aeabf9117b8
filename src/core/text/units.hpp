#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

/// Numbers with their units, as people read them.
namespace hortator::units {

/// "512 B", "1.5 KiB", "3.2 GiB"
std::string bytes(std::uint64_t count);

/// The number of "64MiB", "1.5 KiB", "4096", "2GB", units in any case. Throws what does not read so, and "2Gb": some
/// take that for bits.
std::uint64_t parse_bytes(std::string_view text);

/// "0.8 ms", "12 s", "3 min 20 s", "2 h 05 min"
std::string duration(std::chrono::duration<double> time);

/// "500ms", "30s", "10min", "1.5h": a number with its unit; nothing for any other text, and for 0 or less.
std::optional<std::chrono::milliseconds> parse_duration(std::string_view words);

/// Three significant digits: "0.0123", "4.56", "789"
std::string number(double value);

}  // namespace hortator::units
