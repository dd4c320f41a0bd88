#include "kernels/matvec_rows.h"

namespace tandem {

void matvec_plain(const MatVec& product) { multiply<16>(product); }

}  // namespace tandem
