//! What a request brings along, and the room that this takes of what there is for all requests.
//!
//! The room is given back with it: the body goes once it is read, and what was read of it before
//! anything waits, so that requests that wait keep no others out.

use std::any::Any;

use adjourn::core::json;
use serde_json::{Map, Value};

use crate::error::Error;
use crate::params::Params;
use crate::rpc::BODY_BYTES;

/// Some of the room that a server has for requests, given back when it is dropped; nothing where no
/// bound was set.
pub type Room = Option<Box<dyn Any + Send + Sync>>;

/// A body that has arrived, and the room that it takes.
pub struct Arrived {
    /// The body.
    pub bytes: Vec<u8>,
    /// Its room.
    pub room: Room,
}

impl Arrived {
    /// Reads the body as JSON. The room goes over to what was read.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn read(self) -> Result<(Value, Room), Error> {
        let Self { bytes, room } = self;
        let read = json::read(&bytes, BODY_BYTES);
        Ok((read.map_err(|unreadable| Error::unreadable(&unreadable))?, room))
    }
}

impl From<&[u8]> for Arrived {
    fn from(bytes: &[u8]) -> Self {
        Self { bytes: bytes.to_vec(), room: None }
    }
}

/// The parameters of a request, and the room that they take.
pub struct Given {
    params: Value,
    _room: Room,
}

impl Given {
    /// Makes the parameters of a request; what needs none may have none.
    pub fn new(params: Value, room: Room) -> Self {
        let params = if params.is_null() { Map::new().into() } else { params };
        Self { params, _room: room }
    }

    /// Returns the parameters, which have to be an object.
    pub(crate) fn params(&self) -> Result<Params<'_>, Error> {
        Params::read(&self.params)
    }
}
