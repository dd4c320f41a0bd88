#pragma once

#include <emmintrin.h>

#include <bit>

namespace tandem {

namespace detail {
const char* piece_end_of_any(const char* at, const char* end);
}

// The end of the piece that starts at `at`, in non-empty valid UTF-8. Pieces are the matches of GPT-2's pattern:
// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
inline const char* piece_end(const char* at, const char* end) {
  // Half of all pieces are a space and up to 15 ASCII letters: one vector comparison finds their end.
  constexpr int kVector = 16;
  if (end - at > kVector) {
    const __m128i lower = _mm_or_si128(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at)), _mm_set1_epi8(0x20));
    const __m128i is_letter =
        _mm_and_si128(_mm_cmpgt_epi8(lower, _mm_set1_epi8('a' - 1)), _mm_cmplt_epi8(lower, _mm_set1_epi8('z' + 1)));
    const int begin = *at == ' ' ? 1 : 0;
    const int stop = begin + std::countr_one(static_cast<unsigned>(_mm_movemask_epi8(is_letter)) >> begin);
    if (stop > begin && stop < kVector && static_cast<unsigned char>(at[stop]) < 0x80) return at + stop;
  }
  return detail::piece_end_of_any(at, end);
}

}  // namespace tandem
