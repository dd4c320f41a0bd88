#include "launch/cause/error_words.h"

#include <gtest/gtest.h>

namespace tandem {
namespace {

TEST(IsAboutPeer, KnowsTheWordsOfGlooTorchAndNccl) {
  for (const char* message :
       {"ConnectionResetError: [Errno 104] Connection reset by peer", "requests.exceptions.ConnectionError: x",
        "RuntimeError: [../gloo/transport/tcp/pair.cc:537] Read error [127.0.0.1]:38306: Connection reset by peer. "
        "Check the "
        "logs of the remote worker before reporting an error.",
        "RuntimeError: [../gloo/transport/tcp/unbound_buffer.cc:78] Timed out waiting 4000ms for recv operation to "
        "complete",
        "RuntimeError: [Rank 0]: Rank 1 failed to pass monitoredBarrier in 1800000 ms",
        "torch.distributed.DistStoreError: Timed out after 6 seconds waiting for clients. 3/4 clients joined.",
        "torch.distributed.DistStoreError: wait timeout after 5000ms, keys: /default_pg/0//cpu//0/0",
        "torch.distributed.DistNetworkError: The client socket has timed out after 5000ms while trying to connect to "
        "(127.0.0.1, 29622).",
        "torch.distributed.DistBackendError: NCCL error in: NCCLUtils.hpp:268, remote process exited or there was a "
        "network "
        "error, NCCL version 2.21.5\nncclRemoteError: A call failed possibly due to a network error or a remote "
        "process "
        "exiting prematurely.\nLast error:\nsocketProgressOpt: Call to recv from 172.0.0.1<33759> failed : Connection "
        "reset",
        "RuntimeError: [3] is setting up NCCL communicator and retrieving ncclUniqueId from [0] via c10d key-value "
        "store by "
        "key '0', but store->get('0') got error: Socket Timeout",
        "error: store: lost while waiting for 'user/never': failed to recv [rank 1 of 2]",
        "error: rendezvous: of 4 ranks, 1 did not come within 2m: 3 [rank 0 of 4]"}) {
    EXPECT_TRUE(is_about_peer(message)) << message;
  }
}

TEST(IsAboutPeer, LeavesARankItsOwnErrors) {
  for (const char* message :
       {"ValueError: boom",
        "torch.distributed.DistBackendError: NCCL error in: NCCLUtils.cpp:93, unhandled cuda error, NCCL version "
        "2.28.9\n"
        "Last error:\nCuda failure 2 'out of memory'",
        "torch.distributed.DistBackendError: NCCL error in: NCCLUtils.cpp:93, invalid usage (run with NCCL_DEBUG=WARN "
        "for "
        "details), NCCL version 2.28.9\nncclInvalidUsage: This usually reflects invalid usage of NCCL library.\n"
        "Last error:\nDuplicate GPU detected : rank 0 and rank 1 both on CUDA device ac000",
        "torch.distributed.DistBackendError: NCCL error in: x, unhandled system error\nncclSystemError: System call "
        "(e.g. "
        "socket, malloc) or external library call failed or device error.\nLast error:\nError while creating shared "
        "memory "
        "segment /dev/shm/nccl-x (size 9637888)",
        "[PG 0 Rank 3] Process group watchdog thread terminated with exception: CUDA error: an illegal memory access",
        "torch.distributed.DistNetworkError: The server socket has failed to listen on any local network address. "
        "port: "
        "29633, useIpv6: false, code: -98, name: EADDRINUSE, message: address already in use",
        "error: rendezvous: rank 0 cannot host the store at 127.0.0.1:29500 [rank 0 of 2]",
        "error: rendezvous: WORLD_SIZE is 2, but MASTER_PORT is not set", "BrokenPipeError: [Errno 32] Broken pipe"}) {
    EXPECT_FALSE(is_about_peer(message)) << message;
  }
}

}  // namespace
}  // namespace tandem
