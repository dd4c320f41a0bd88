#include <gtest/gtest.h>

#include "parity/precision_contract.h"

namespace tandem {
namespace {

TEST(Precision, SixteenBitsConvergeAsFastAsFp32) {
  Communicator comm = Communicator::join();
  check_sixteen_bits(comm);
}

}  // namespace
}  // namespace tandem
