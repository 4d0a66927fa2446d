// One client connection of the server: reads a head, calls the handler, and so on until it ends.
#pragma once

#include <memory>
#include <string>
#include <unordered_set>

#include "net/deadline.h"
#include "net/handler.h"
#include "net/head_parser.h"
#include "net/response_writer.h"
#include "net/server.h"
#include "net/wire.h"

namespace cay::net {

class Connection;

// What the connections of one server share; lives as long as the last of them.
struct ServerCore {
  Handler& handler;
  ServerLimits limits;
  WorkerPool* workers;
  std::shared_ptr<DeadlineSweep> sweep;
  bool stopping = false;
  std::unordered_set<Connection*> connections;
  size_t refusals = 0;  // clients being told that there are too many
};

class Connection {
 public:
  Connection(std::shared_ptr<ServerCore> core, Stream stream, Peer peer);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Serves requests until the connection ends.
  Task<> serve();
  // Closes it if no request is in progress.
  void closeIfIdle();

 private:
  enum class Next { kRequest, kClose, kLinger, kDone };

  // kRequest when head_ is filled.
  Task<Next> readHead();
  Task<Next> answerRequest();
  // Answers what cannot reach the handler.
  Task<Next> refuse(const HeadError& error);

  std::shared_ptr<ServerCore> core_;
  Wire wire_;
  Deadline deadline_;
  RequestParser parser_;
  RequestHead head_;
  std::string scratch_;
  bool idle_ = true;
  bool fresh_ = true;  // nothing received yet
};

// A whole answer {"error": …} that ends the connection.
std::string closingAnswer(int status, std::string_view message);

}  // namespace cay::net
