#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#ifdef __F16C__
#include <cpuid.h>
#include <immintrin.h>
#endif

/// 16-bit floats to 32 bits and back, in loops that compilers turn into vectors. Round to nearest even, as LibTorch
/// does. Everything has internal linkage: files that include this are compiled for different CPUs.
namespace hortator::comm::kernels {
namespace {

#ifdef __F16C__
// Asked by hand: __builtin_cpu_supports knows this feature only in the newest compilers.
inline bool converts_halves() {
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}
#endif

struct BFloat16 {
  std::uint16_t bits;
};
struct Half {
  std::uint16_t bits;
};

inline float widen(BFloat16 value) { return std::bit_cast<float>(std::uint32_t{value.bits} << 16); }

inline void narrow(float value, BFloat16& out) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const bool is_nan = (bits & 0x7fffffffu) > 0x7f800000u;
  out.bits = static_cast<std::uint16_t>(is_nan ? 0x7fc0u : rounded);
}

// Halves have denormals in range: scaling by a power of two moves them to where 32-bit floats are normal, and back.
inline float widen(Half value) {
  const std::uint32_t magnitude = (std::uint32_t{value.bits} & 0x7fffu) << 13;
  const float scaled = std::bit_cast<float>(magnitude) * 0x1p112f;
  const std::uint32_t special = (magnitude >= 0x0f800000u) ? 0x7f800000u : 0u;  // infinity and NaN
  const std::uint32_t sign = (std::uint32_t{value.bits} & 0x8000u) << 16;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(scaled) | special | sign);
}

inline void narrow(float value, Half& out) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  std::uint32_t half = 0;
  if (magnitude > 0x7f800000u) {
    half = 0x7e00u;
  } else if (magnitude >= 0x477ff000u) {  // 65520 and more round to infinity
    half = 0x7c00u;
  } else if (magnitude >= 0x38800000u) {  // normal
    half = (magnitude - 0x38000000u + 0x0fffu + ((magnitude >> 13) & 1u)) >> 13;
  } else {  // denormal: adding 0.5 lets the adder do the rounding
    half = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000u;
  }
  out.bits = static_cast<std::uint16_t>(half | sign);
}

template <typename Narrow>
void widen_all(const Narrow* in, float* out, std::size_t count) {
  std::size_t i = 0;
#ifdef __F16C__
  if constexpr (std::is_same_v<Narrow, Half>) {
    for (; i + 8 <= count; i += 8) {
      _mm256_storeu_ps(out + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(in + i))));
    }
  }
#endif
  for (; i < count; ++i) out[i] = widen(in[i]);
}

template <typename Narrow>
void narrow_all(const float* in, Narrow* out, std::size_t count) {
  std::size_t i = 0;
#ifdef __F16C__
  if constexpr (std::is_same_v<Narrow, Half>) {
    for (; i + 8 <= count; i += 8) {
      _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i),
                       _mm256_cvtps_ph(_mm256_loadu_ps(in + i), _MM_FROUND_TO_NEAREST_INT));
    }
  }
#endif
  for (; i < count; ++i) narrow(in[i], out[i]);
}

}  // namespace
}  // namespace hortator::comm::kernels
