//! Gates.

use adjourn_core::id::GateId;
use adjourn_core::time::Timestamp;
use rusqlite::params;

use super::{SqliteRows, json, text};
use crate::error::Error;
use crate::rows::{GateRow, Gates};

impl SqliteRows<'_> {
    fn forget_gates(&self) {
        if let Some(known) = self.writing {
            known.gates.replace(None);
        }
    }
}

impl Gates for SqliteRows<'_> {
    fn gates(&mut self) -> Result<Vec<GateRow>, Error> {
        if let Some(gates) = self.writing.and_then(|known| known.gates.borrow().clone()) {
            return Ok(gates);
        }
        let mut statement = self.prepare("SELECT gate, scope, at FROM gate ORDER BY at")?;
        let mut rows = statement.query([])?;
        let mut gates = Vec::new();
        while let Some(row) = rows.next()? {
            gates.push(GateRow {
                gate: json(&row.get::<_, String>(0)?)?,
                scope: json(&row.get::<_, String>(1)?)?,
                at: Timestamp::from_millis(row.get(2)?),
            });
        }
        if let Some(known) = self.writing {
            known.gates.replace(Some(gates.clone()));
        }
        Ok(gates)
    }

    fn add_gate(&mut self, gate: &GateRow) -> Result<(), Error> {
        self.forget_gates();
        self.run(
            "INSERT INTO gate (id, gate, scope, at) VALUES (?1, ?2, ?3, ?4)",
            params![
                gate.gate.id.uuid().as_bytes(),
                text(&gate.gate)?,
                text(&gate.scope)?,
                gate.at.as_millis()
            ],
        )?;
        Ok(())
    }

    fn remove_gate(&mut self, id: GateId) -> Result<bool, Error> {
        self.forget_gates();
        Ok(self.run("DELETE FROM gate WHERE id = ?1", [id.uuid().as_bytes()])? > 0)
    }
}
