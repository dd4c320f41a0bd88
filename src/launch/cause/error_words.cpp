#include "launch/cause/error_words.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

namespace tandem {
namespace {

// Errors of this rank itself in messages of torch, NCCL and Gloo, sometimes inside an exception about a lost peer.
constexpr std::array<std::string_view, 12> kOwn = {
    "out of memory", "invalid device ordinal",  "duplicate gpu",         "address already in use",
    "eaddrinuse",    "failed to bind",          "cuda error: ",          "unhandled cuda error",
    "invalid usage", "no space left on device", "shared memory segment", "cannot host the store"};

constexpr std::array<std::string_view, 30> kPeer = {"diststoreerror",
                                                    "connection closed by peer",
                                                    "connection reset by peer",
                                                    "connection refused",
                                                    "connectionerror: ",
                                                    "connectionaborted",
                                                    "timed out waiting",
                                                    "distnetworkerror",
                                                    "ncclremoteerror",
                                                    "ncclsystemerror",
                                                    "remote process exited",
                                                    "closed by remote peer",
                                                    "remote peer closed the connection",
                                                    "check the logs of the remote worker",
                                                    "socket timeout",
                                                    "recvvalue failed",
                                                    "sendbytes failed",
                                                    "store->get",
                                                    "wait timeout after",
                                                    "timed out initializing process group",
                                                    "watchdog caught collective operation timeout",
                                                    "monitoredbarrier",
                                                    "nccl communicator was aborted",
                                                    "collective operation timeout",
                                                    "rendezvous: of ",
                                                    "rendezvous: the store at ",
                                                    "error: comm: ",
                                                    "store: lost while ",
                                                    "store: nobody set ",
                                                    "store: not all ranks came "};

// A common error, which means a lost peer only in a message of a communication library.
constexpr std::string_view kBrokenPipe = "broken pipe";
constexpr std::array<std::string_view, 5> kPeerLibraries = {"gloo", "nccl", "c10d", "tcpstore", "socketimpl"};

constexpr std::array<std::string_view, 8> kErrorStarts = {
    "error: ", "Error: ", "ERROR: ", "fatal: ", "FATAL", "Fatal ", "free(): ", "double free or corruption"};

constexpr std::array<std::string_view, 14> kErrorWords = {": error: ",
                                                          "Error: ",
                                                          "Exception: ",
                                                          "command not found",
                                                          ": not found",
                                                          "No such file",
                                                          "Permission denied",
                                                          "Error while finding module",
                                                          " Assertion `",
                                                          "CUDA error",
                                                          "NCCL error",
                                                          "panicked at ",
                                                          "stack smashing detected",
                                                          "Watchdog caught collective operation timeout"};

constexpr std::array<std::string_view, 6> kNoiseStarts = {
    "frame #", "Exception raised from ", "Exception ignored in", "<omitting python frames>",
    "wandb: ", "Extension modules: "};

template <std::size_t N>
bool holds_any(std::string_view text, const std::array<std::string_view, N>& words) {
  return std::ranges::any_of(words, [&](std::string_view word) { return text.find(word) != std::string_view::npos; });
}

template <std::size_t N>
bool starts_with_any(std::string_view text, const std::array<std::string_view, N>& starts) {
  return std::ranges::any_of(starts, [&](std::string_view start) { return text.starts_with(start); });
}

// "[W1116 12:49:06...", as torch's C++ libraries begin a line.
bool is_torch_log(std::string_view line) {
  return line.size() > 2 && line[0] == '[' && std::string_view("IWEF").find(line[1]) != std::string_view::npos &&
         std::isdigit(static_cast<unsigned char>(line[2])) != 0;
}

}  // namespace

bool is_about_peer(std::string_view message) {
  std::string text(message);
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (holds_any(text, kOwn)) return false;
  return holds_any(text, kPeer) || (text.find(kBrokenPipe) != std::string::npos && holds_any(text, kPeerLibraries));
}

bool reports_error(std::string_view line) {
  return starts_with_any(line, kErrorStarts) || holds_any(line, kErrorWords);
}

bool is_library_noise(std::string_view line) {
  return is_torch_log(line) || line.find("Warning: ") != std::string_view::npos || starts_with_any(line, kNoiseStarts);
}

}  // namespace tandem
